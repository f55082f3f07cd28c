"""Recorded runs: read from the journal, replayed, or forked."""
