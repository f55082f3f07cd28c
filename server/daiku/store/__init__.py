"""Database access: one Database protocol over SQLite and PostgreSQL, session locks and leases, locked
folders."""
