"""All database access: the Database protocol, its SQLite implementation, and the session lock."""
