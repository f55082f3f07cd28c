"""Daiku as a library: models and MCP servers without the rest."""
