"""Lessons by a model: what it is shown of a run, and what its reply comes to."""
