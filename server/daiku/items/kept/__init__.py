"""The work tree of an item on the server: pushed, saved after each plan step, and restored on another
machine."""
