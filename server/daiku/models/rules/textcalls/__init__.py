"""Tool calls that a model writes into the text of its reply, found and read."""
