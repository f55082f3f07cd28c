"""Requests of the editor: one module per group of methods, and their table."""
