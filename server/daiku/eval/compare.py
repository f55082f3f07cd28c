"""Totals of attempts by setting, and comparison of two settings, paired by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from daiku.domain.messages import Usage
from daiku.eval.results import COUNTED, Comparison, EvalAttempt, Evaluation, Ratio, Totals

Z = 1.959964
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Interval(NamedTuple):
    """A value with its confidence interval."""

    value: float
    low: float
    high: float


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with `freedom` degrees of freedom (at least 1)."""
    return _T[freedom - 1] if freedom <= len(_T) else Z + 2.37 / freedom + 2.8 / freedom**2


def wilson_interval(good: int, all_: int) -> Interval:
    """Return the proportion of `good` in `all_` with Wilson's interval; 0 to 1 without data."""
    if all_ == 0:
        return Interval(0.0, 0.0, 1.0)
    share, square = good / all_, Z * Z
    middle = (share + square / (2 * all_)) / (1 + square / all_)
    half = Z / (1 + square / all_) * math.sqrt(share * (1 - share) / all_ + square / (4 * all_ * all_))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def paired_difference(differences: Sequence[float]) -> Interval:
    """Return the mean of `differences`, one per task from -1 to 1, with a 95 % interval.

    It is the adjusted Wald interval for paired proportions of Bonett and Price. It adds one task on either
    side, so that few tasks, or tasks that all agree, do not look certain.
    """
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
    """Return the p-value of the exact two-sided sign test (McNemar's, with one run per task)."""
    count = better + worse
    tail = sum(math.comb(count, k) for k in range(min(better, worse) + 1)) / 2**count
    return min(1.0, 2 * tail)


def mean_ratio(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the geometric mean of second/first over the pairs in which both are positive.

    Its bounds are by Student's t, and infinite for one pair. None without such a pair.
    """
    logs = [math.log(second / first) for first, second in pairs if first > 0 and second > 0]
    if not logs:
        return None
    mean = sum(logs) / len(logs)
    if len(logs) == 1:
        return Interval(math.exp(mean), 0.0, math.inf)
    variance = sum((each - mean) ** 2 for each in logs) / (len(logs) - 1)
    half = t_quantile(len(logs) - 1) * math.sqrt(variance / len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


CERTAIN = 0.05
Used = Literal["calls", "prompt_tokens", "completion_tokens", "cost", "seconds"]
_USED: dict[Used, Callable[[EvalAttempt], float]] = {
    "calls": lambda a: len(a.calls),
    "prompt_tokens": lambda a: a.usage.prompt_tokens,
    "completion_tokens": lambda a: a.usage.completion_tokens,
    "cost": lambda a: a.usage.cost or 0.0,
    "seconds": lambda a: a.seconds,
}


def compute_totals(setting: str, attempts: Sequence[EvalAttempt]) -> Totals:
    """Return the totals of the attempts of `setting`."""
    own = [a for a in attempts if a.setting == setting]
    counted = [a for a in own if a.outcome in COUNTED]
    proved = sum(a.outcome == "proved" for a in counted)
    share = wilson_interval(proved, len(counted))
    used = Usage()
    for attempt in own:
        used = used.plus(attempt.usage)
    return Totals(
        setting=setting,
        counted=len(counted),
        proved=proved,
        low=share.low,
        high=share.high,
        other=len(own) - len(counted),
        calls=sum(len(a.calls) for a in own),
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        cached_tokens=used.cached_tokens,
        cost=used.cost,
        seconds=sum(a.seconds for a in own),
    )


def compare(first: str, second: str, attempts: Sequence[EvalAttempt]) -> Comparison:
    """Compare the setting `second` with `first`, over the tasks with counted attempts of both."""
    pairs = list(_group_by_task(first, second, attempts).values())
    differences = [_compute_rate(b) - _compute_rate(a) for a, b in pairs]
    interval = paired_difference(differences)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    p = sign_test(better, worse)
    ratios = (_compute_ratio(what, pairs) for what in _USED)
    return Comparison(
        tasks=len(pairs),
        better=better,
        worse=worse,
        difference=interval.value,
        low=interval.low,
        high=interval.high,
        p=p,
        tells=p <= CERTAIN and not interval.low <= 0 <= interval.high,
        ratios=tuple(ratio for ratio in ratios if ratio is not None),
    )


def compare_evaluations(earlier: Evaluation, now: Evaluation) -> Evaluation:
    """Compare the first setting of `earlier` as A with that of `now` as B."""
    sides = [
        (evaluation, evaluation.settings[0], label) for evaluation, label in ((earlier, "A"), (now, "B"))
    ]
    attempts = tuple(
        attempt.model_copy(update={"setting": label})
        for evaluation, side, label in sides
        for attempt in evaluation.attempts
        if attempt.setting == side.label
    )
    return now.model_copy(
        update={
            "settings": tuple(side.model_copy(update={"label": label}) for _, side, label in sides),
            "attempts": attempts,
            "totals": tuple(compute_totals(label, attempts) for _, _, label in sides),
            "comparison": compare("A", "B", attempts),
        }
    )


Pair = tuple[list[EvalAttempt], list[EvalAttempt]]


def _group_by_task(first: str, second: str, attempts: Sequence[EvalAttempt]) -> dict[str, Pair]:
    pairs: dict[str, Pair] = {}
    for attempt in attempts:
        if attempt.outcome in COUNTED and attempt.setting in (first, second):
            pair = pairs.setdefault(attempt.task, ([], []))
            pair[attempt.setting == second].append(attempt)
    return {task: pair for task, pair in pairs.items() if all(pair)}


def _compute_rate(attempts: Sequence[EvalAttempt]) -> float:
    return sum(a.outcome == "proved" for a in attempts) / len(attempts)


def _compute_ratio(what: Used, pairs: Sequence[Pair]) -> Ratio | None:
    used = _USED[what]
    means = [(sum(map(used, a)) / len(a), sum(map(used, b)) / len(b)) for a, b in pairs]
    interval = mean_ratio(means)
    if interval is None:
        return None
    is_bounded = math.isfinite(interval.high)
    return Ratio(
        what=what,
        tasks=sum(a > 0 and b > 0 for a, b in means),
        ratio=interval.value,
        low=interval.low if is_bounded else None,
        high=interval.high if is_bounded else None,
        differs=is_bounded and not interval.low <= 1 <= interval.high,
    )
