"""Memory over sessions: what a person wants kept, found again by words and meanings, on SQLite or PostgreSQL."""
