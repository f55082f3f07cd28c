"""Parsers for model replies: JSON, thinking, action lists, and forms of roles."""
