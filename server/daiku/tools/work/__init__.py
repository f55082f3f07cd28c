"""Tools for the work itself: plans, tasks, handoffs."""
