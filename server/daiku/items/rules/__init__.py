"""Pure functions for work items: texts written to a forge, and texts read there."""
