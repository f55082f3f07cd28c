"""Agents: their prompts, tools, output types and state machines, and the table that lists them all."""
