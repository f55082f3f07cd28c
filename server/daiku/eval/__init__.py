"""Evaluation of models on tasks: runs them, checks the results by program, and compares settings."""
