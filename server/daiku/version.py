"""The version of Daiku."""

__version__ = "0.1.0"
