"""Guardrails on the input, tool calls, and output of a run: by schema, pattern, function, similarity, or tokens."""
