"""The gate: which runs a change is tried on, in which order and at what cost, and when it is kept or refused."""
