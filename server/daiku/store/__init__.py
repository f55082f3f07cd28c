"""Database access: a Database protocol over SQLite and PostgreSQL, locks, and leases."""
