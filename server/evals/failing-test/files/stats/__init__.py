"""Small statistics over lists of numbers."""

from stats.middle import median, mode
from stats.spread import spread, variance

__all__ = ["median", "mode", "spread", "variance"]
