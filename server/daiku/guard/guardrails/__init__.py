"""Guardrails: what may go into a run, be called in it and come out of it; by schema, pattern, function, tokens."""
