"""Evidence for lessons in the record of a run: advised commands, and edits."""
