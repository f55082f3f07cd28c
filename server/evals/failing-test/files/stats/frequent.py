"""Which numbers of a list are the most frequent."""

from collections import Counter


def mode(values):
    """The most frequent value; of several the smallest."""
    if not values:
        raise ValueError("no values")
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)
