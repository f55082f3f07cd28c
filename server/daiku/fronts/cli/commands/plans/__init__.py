"""Commands on plans, and the report of a session."""
