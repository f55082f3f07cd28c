"""What lies in the middle of a list of numbers."""

from collections import Counter


def mean(values):
    """The arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median(values):
    """The middle value; of an even number of values the mean of the two in the middle."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return mean(ordered[half : half + 2])


def mode(values):
    """The most frequent value; of several the smallest."""
    if not values:
        raise ValueError("no values")
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)
