"""A folder of Markdown files as a source of work items, for use without a forge."""
