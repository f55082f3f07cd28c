"""What project this is: its kind, its map, the definition around a line."""
