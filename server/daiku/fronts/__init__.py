"""User and client interfaces: the terminal, the language server, the Agent Client Protocol, and HTTP."""
