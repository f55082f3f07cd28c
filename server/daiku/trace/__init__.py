"""Edge: the journal and its exports."""
