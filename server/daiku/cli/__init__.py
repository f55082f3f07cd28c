"""Edge: the terminal front."""
