"""Long-term memory: entries that the user keeps, searched by words and vectors."""
