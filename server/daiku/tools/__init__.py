"""Tools that agents can call, all listed in one table."""
