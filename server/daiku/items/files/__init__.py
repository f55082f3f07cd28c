"""Markdown files of a folder as work items, to try them without a forge."""
