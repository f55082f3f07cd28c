"""Notebooks as text: their cells, and the spans of their JSON."""
