"""What the terminal asks: approvals, keys, hunks to pick."""
