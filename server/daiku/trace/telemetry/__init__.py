"""Traces of runs, written and sent while they happen: files, and spans to a collector."""
