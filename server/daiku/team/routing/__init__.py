"""Routers choose the agents for a request, by rules or with a light model."""
