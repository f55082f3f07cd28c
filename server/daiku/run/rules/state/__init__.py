"""A run's state: the fold of its events, the conversation in it, and what is left out of it."""
