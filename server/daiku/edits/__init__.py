"""Edits: their formats, where they match, what they change, and the review of changes."""
