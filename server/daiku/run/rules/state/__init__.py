"""State of a run: the fold of its events, its conversation, and compaction."""
