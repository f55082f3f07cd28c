"""The one door to databases: what a table needs of one, SQLite behind it, and the lock of a session."""
