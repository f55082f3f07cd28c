"""What the record of a run shows of a lesson: the commands it advises, and the edits of the run."""
