"""Commands for plans, and the report of a session."""
