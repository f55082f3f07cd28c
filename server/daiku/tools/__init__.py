"""The tools that agents can call; all of them are in one table."""
