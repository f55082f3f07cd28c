"""All database access: one Database protocol over SQLite and PostgreSQL; locks and leases of sessions, locked folders."""
