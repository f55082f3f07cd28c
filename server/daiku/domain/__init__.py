"""Shared types: frozen models used by every layer; depends on pydantic and the standard library only."""
