"""Trials: a command runs first where its writes are discarded, and only what writes is asked about."""
