"""Traces written and sent while runs happen: files, and spans for a collector."""
