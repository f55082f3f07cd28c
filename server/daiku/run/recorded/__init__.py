"""Runs that the journal holds: read back, replayed, forked."""
