"""Journal of sessions, and its exports."""
