"""Daiku as a library: the Runner, models and MCP servers by themselves, and what every front may use of runs."""
