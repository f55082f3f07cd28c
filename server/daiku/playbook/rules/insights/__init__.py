"""Lessons from a model: the run as text, and insights as proposals."""
