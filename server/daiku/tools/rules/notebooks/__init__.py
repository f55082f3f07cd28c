"""Notebooks as text: cells, and the spans of their JSON."""
