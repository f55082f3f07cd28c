"""Permission checks for tool calls: the verdict, the paths a call touches, and redaction of secrets."""
