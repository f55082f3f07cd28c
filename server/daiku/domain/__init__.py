"""Words: frozen types that every other layer speaks; pydantic and the standard library only."""
