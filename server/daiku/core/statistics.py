"""Plain statistics of success and use: shares with bounds, paired differences, ratios. All bounds are of 95 %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Z = 1.959964
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Interval(NamedTuple):
    """A number, and what it may as well be."""

    value: float
    low: float
    high: float


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with so many degrees of freedom (at least 1)."""
    return _T[freedom - 1] if freedom <= len(_T) else Z + 2.37 / freedom + 2.8 / freedom**2


def wilson(good: int, all_: int) -> Interval:
    """The share `good` of `all_` with Wilson's interval; anything is possible where nothing was seen."""
    if all_ == 0:
        return Interval(0.0, 0.0, 1.0)
    share, square = good / all_, Z * Z
    middle = (share + square / (2 * all_)) / (1 + square / all_)
    half = Z / (1 + square / all_) * math.sqrt(share * (1 - share) / all_ + square / (4 * all_ * all_))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def paired_difference(differences: Sequence[float]) -> Interval:
    """The mean of `differences` (one a task, each from -1 to 1), with the adjusted Wald interval for paired
    shares of Bonett and Price: one task more is thought of on either side, so that few tasks, or tasks that
    all agree, do not look certain."""
    count = len(differences)
    if count == 0:
        return Interval(0.0, -1.0, 1.0)
    mean = sum(differences) / count
    adjusted = sum(differences) / (count + 2)
    spread = (sum(d * d for d in differences) + 2) / (count + 2) - adjusted * adjusted
    half = Z * math.sqrt(max(0.0, spread) / (count + 2))
    low, high = max(-1.0, adjusted - half), min(1.0, adjusted + half)
    return Interval(mean, min(low, mean), max(high, mean))


def sign_test(better: int, worse: int) -> float:
    """The chance that tasks of which each may as well turn out the other way differ at least so one-sidedly:
    the exact two-sided sign test (McNemar's, with one run a task)."""
    count = better + worse
    tail = sum(math.comb(count, k) for k in range(min(better, worse) + 1)) / 2**count
    return min(1.0, 2 * tail)


def mean_ratio(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """How many times the first the second is: the geometric mean over the pairs in which both are positive,
    with bounds by Student's t; of one pair the bounds are infinite. None where there is no such pair."""
    logs = [math.log(second / first) for first, second in pairs if first > 0 and second > 0]
    if not logs:
        return None
    mean = sum(logs) / len(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), 0.0, math.inf)
    variance = sum((each - mean) ** 2 for each in logs) / (len(logs) - 1)
    half = t_quantile(len(logs) - 1) * math.sqrt(variance / len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
