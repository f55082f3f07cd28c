"""What lies in the middle of a list of numbers."""

from stats.average import mean


def median(values):
    """The middle value; of an even number of values the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return mean(ordered[half : half + 2])
