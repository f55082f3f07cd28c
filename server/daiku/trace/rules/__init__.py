"""The chunks of a session as trace lines and as spans."""
