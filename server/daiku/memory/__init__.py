"""Long-term memory: entries that the user wants to keep, searched by words and vectors, on SQLite or
PostgreSQL."""
