"""Differences between texts: aligned, shown, chosen from, reviewed."""
