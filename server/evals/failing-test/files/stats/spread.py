"""How far apart numbers lie."""

from stats.average import mean


def spread(values):
    """The distance from the smallest value to the largest."""
    if not values:
        raise ValueError("no values")
    return max(values) - min(values)


def variance(values):
    """The mean squared distance from the mean."""
    middle = mean(values)
    return mean([(value - middle) ** 2 for value in values])
