"""Plans and session reports for fronts."""
