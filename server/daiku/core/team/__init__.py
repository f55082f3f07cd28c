"""A plan worked by agents, as pure moves: tasks, checks, records, reports."""
