"""Attempts summed up by setting, and two settings set against one another, paired by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from daiku.core.statistics import mean_ratio, paired_difference, sign_test, wilson
from daiku.domain.messages import Usage
from daiku.eval.results import COUNTED, Attempt, Comparison, Evaluation, Ratio, Totals

CERTAIN = 0.05
Used = Literal["calls", "prompt_tokens", "completion_tokens", "cost", "seconds"]
_USED: dict[Used, Callable[[Attempt], float]] = {
    "calls": lambda a: len(a.calls),
    "prompt_tokens": lambda a: a.usage.prompt_tokens,
    "completion_tokens": lambda a: a.usage.completion_tokens,
    "cost": lambda a: a.usage.cost or 0.0,
    "seconds": lambda a: a.seconds,
}


def totals_of(setting: str, attempts: Sequence[Attempt]) -> Totals:
    """Everything that the attempts of `setting` came to."""
    own = [a for a in attempts if a.setting == setting]
    counted = [a for a in own if a.outcome in COUNTED]
    proved = sum(a.outcome == "proved" for a in counted)
    share = wilson(proved, len(counted))
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


def compare(first: str, second: str, attempts: Sequence[Attempt]) -> Comparison:
    """The setting `second` beside `first`: over the tasks in which attempts of both count."""
    pairs = list(_pairs(first, second, attempts).values())
    differences = [_rate(b) - _rate(a) for a, b in pairs]
    found = paired_difference(differences)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    p = sign_test(better, worse)
    ratios = (_ratio(what, pairs) for what in _USED)
    return Comparison(
        tasks=len(pairs),
        better=better,
        worse=worse,
        difference=found.value,
        low=found.low,
        high=found.high,
        p=p,
        tells=p <= CERTAIN and not found.low <= 0 <= found.high,
        ratios=tuple(ratio for ratio in ratios if ratio is not None),
    )


def beside(earlier: Evaluation, now: Evaluation) -> Evaluation:
    """The only, or first, setting of `earlier` as A, and that of `now` as B, compared."""
    sides = [(found, found.settings[0], label) for found, label in ((earlier, "A"), (now, "B"))]
    attempts = tuple(
        attempt.model_copy(update={"setting": label})
        for found, side, label in sides
        for attempt in found.attempts
        if attempt.setting == side.label
    )
    return now.model_copy(
        update={
            "settings": tuple(side.model_copy(update={"label": label}) for _, side, label in sides),
            "attempts": attempts,
            "totals": tuple(totals_of(label, attempts) for _, _, label in sides),
            "comparison": compare("A", "B", attempts),
        }
    )


Pair = tuple[list[Attempt], list[Attempt]]


def _pairs(first: str, second: str, attempts: Sequence[Attempt]) -> dict[str, Pair]:
    found: dict[str, Pair] = {}
    for attempt in attempts:
        if attempt.outcome in COUNTED and attempt.setting in (first, second):
            pair = found.setdefault(attempt.task, ([], []))
            pair[attempt.setting == second].append(attempt)
    return {task: pair for task, pair in found.items() if all(pair)}


def _rate(attempts: Sequence[Attempt]) -> float:
    return sum(a.outcome == "proved" for a in attempts) / len(attempts)


def _ratio(what: Used, pairs: Sequence[Pair]) -> Ratio | None:
    used = _USED[what]
    means = [(sum(map(used, a)) / len(a), sum(map(used, b)) / len(b)) for a, b in pairs]
    found = mean_ratio(means)
    if found is None:
        return None
    bounded = math.isfinite(found.high)
    return Ratio(
        what=what,
        tasks=sum(a > 0 and b > 0 for a, b in means),
        ratio=found.value,
        low=found.low if bounded else None,
        high=found.high if bounded else None,
        differs=bounded and not found.low <= 1 <= found.high,
    )
