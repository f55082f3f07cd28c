"""Model replies as pure functions: calls in texts, thoughts, and forms of roles."""
