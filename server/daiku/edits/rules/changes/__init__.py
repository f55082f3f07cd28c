"""Differences between texts: diffs, chosen hunks, and reviews."""
