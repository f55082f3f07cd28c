"""All database access: one Database protocol over SQLite and PostgreSQL, and the locks and leases of sessions."""
