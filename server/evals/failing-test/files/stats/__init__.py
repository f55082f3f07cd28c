"""Small statistics over lists of numbers."""

from stats.frequent import mode
from stats.middle import median
from stats.spread import spread, variance

__all__ = ["median", "mode", "spread", "variance"]
