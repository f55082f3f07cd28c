"""Decisions: pure functions; no I/O library, not even indirectly."""
