"""Parsers for tool calls in the text of a reply."""
