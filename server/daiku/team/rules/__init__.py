"""The team that executes a plan, as pure functions: tasks, checks, records, reports."""
