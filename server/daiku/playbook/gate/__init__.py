"""The gate's edge: what a run would be told with a change and without it, and what trials of changes have cost."""
