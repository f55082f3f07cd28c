"""Every form of edit that a model writes, read into one Patch."""
