"""Commands for work items and the worker."""
