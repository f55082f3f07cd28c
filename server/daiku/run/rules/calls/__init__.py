"""Tool calls: names, argument validation, and references to earlier results."""
