"""Plans and their text: read, proposed, written, their steps' statuses."""
