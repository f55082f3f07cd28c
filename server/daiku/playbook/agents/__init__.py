"""Agents that learn from runs: the Reflector and the Curator (ACE)."""
