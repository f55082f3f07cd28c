"""One door for SQL: SQLite opened safely, and the lock of a file."""
