"""A report of a list of numbers, one line each."""

from stats import median, mode, spread, variance

LINES = (("median", median), ("mode", mode), ("spread", spread), ("variance", variance))


def report(values):
    """The report as text."""
    return "\n".join(f"{name:<10}{function(values):>10.2f}" for name, function in LINES)
