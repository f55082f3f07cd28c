"""Transports of the MCP SDK: a child process or HTTP, and OAuth sign-in."""
