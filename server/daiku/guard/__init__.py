"""Permission checks for commands and edits, the sandbox, redaction of secrets, and guardrails."""
