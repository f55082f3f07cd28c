"""The fronts: the terminal, the language server, the Agent Client Protocol, and HTTP. Each parses, calls, and shows."""
