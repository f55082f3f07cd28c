"""The guard: which commands and edits are allowed, the sandbox, redaction, and guardrails."""
