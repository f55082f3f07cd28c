"""Nested runs: hand-offs, task loops, and parallel work in copies of the project."""
