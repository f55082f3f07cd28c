"""Runs: start, cancel, pause, resume, steer, approve, answer, replay; the same for every front."""
