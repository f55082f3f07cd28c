"""Pure rules of a run: the next command, the loop, budget, and reminders."""
