"""What the terminal shows: lines, Markdown, diffs, tool calls."""
