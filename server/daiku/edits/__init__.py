"""Edits: their forms, where they match, what they change, and the review of what was changed."""
