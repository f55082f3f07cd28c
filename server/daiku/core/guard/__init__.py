"""May this call be done: the verdict, what it touches, and secrets blacked out."""
