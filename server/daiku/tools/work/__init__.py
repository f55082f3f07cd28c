"""Tools about the work itself: plans, tasks, handoffs."""
