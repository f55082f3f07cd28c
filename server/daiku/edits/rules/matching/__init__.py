"""Search for the text that an edit replaces, and the reason if it is not found."""
