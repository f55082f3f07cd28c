"""The work on an item where it outlives this machine: pushed, kept after each step of the plan, taken over elsewhere."""
