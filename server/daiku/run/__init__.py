"""Runs: start, cancel, pause, resume, steer, approve, answer, and replay."""
