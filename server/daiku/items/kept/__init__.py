"""The work on an item, kept on the server: pushed, kept after each step of the plan, taken over by another machine."""
