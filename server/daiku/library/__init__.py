"""Daiku as a library: the Runner, model and MCP clients, and the run API that all fronts use."""
