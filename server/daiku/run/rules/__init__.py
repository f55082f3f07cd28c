"""One run: what happens next, the loop that does it, its budget and reminders."""
