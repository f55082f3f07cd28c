"""Terminal output: lines, Markdown, diffs, and tool calls."""
