"""Tools as pure functions: maps of code, research, and notebooks."""
