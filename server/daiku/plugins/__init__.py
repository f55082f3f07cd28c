"""Plug-ins: what other installed packages bring by entry points (R1.92), off until the person allows the package."""
