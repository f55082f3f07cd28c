"""Edge: what an agent can do; one table."""
