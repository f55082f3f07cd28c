"""Plug-ins: extensions of other packages by entry point (R1.92), disabled until the user allows the package."""
