"""Search results and findings of web research."""
