"""The average of a list of numbers."""


def mean(values):
    """The arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)
