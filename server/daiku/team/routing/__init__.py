"""Routers: which agents a request is for, by rules or by a light model."""
