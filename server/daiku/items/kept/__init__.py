"""The work tree of an item on the server: pushed, saved after each plan step, restored on another machine."""
