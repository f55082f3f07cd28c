"""Pure permission checks for tool calls, and redaction of secrets."""
