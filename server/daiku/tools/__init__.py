"""Tools that agents can call. The table lists all of them."""
