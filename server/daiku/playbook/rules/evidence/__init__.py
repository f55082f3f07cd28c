"""Evidence for lessons in the record of a run: the commands that they advise, and the edits of the run."""
