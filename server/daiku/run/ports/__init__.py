"""Ports of the loop for one run: model, tools, guard, and user."""
