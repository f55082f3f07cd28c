"""Runs below a run: handoffs, task loops, work side by side."""
