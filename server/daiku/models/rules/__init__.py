"""Pure functions that parse model replies: tool calls in text, thinking, and forms of roles."""
