"""How the MCP SDK reaches a server: an owned child process or HTTP, and signing in over HTTP."""
