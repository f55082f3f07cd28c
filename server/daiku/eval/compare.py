"""Results of an evaluation as values and JSON, their totals, and the comparison of two settings, paired by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from daiku.domain.base import Localizable, Wire
from daiku.domain.messages import Usage
from daiku.domain.runs import RunStatus
from daiku.texts.text import NO_TEXT, Text

Outcome = Literal["proved", "not_proved", "skipped", "not_started", "stopped", "broken"]
"""Outcomes of an attempt.

`proved`: the run completed and every check passed. `skipped`: a program is missing. `not_started`, `stopped`:
the cost limit or an interruption came before or during the run. `broken`: the setup failed, or the model was
unavailable.
"""
COUNTED: tuple[Outcome, ...] = ("proved", "not_proved")
"""Outcomes that count for a setting."""


class SettingInfo(Wire):
    """One side: its label, model, settings that differ from the user's, and the ids of its lessons."""

    label: str
    model: str
    overrides: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


class CheckResult(Wire):
    """A check after the run: a command with its exit code and the end of its output."""

    command: str
    ok: bool
    exit_code: int
    seconds: float
    output: str = ""


class EvalAttempt(Localizable):
    """One run of a task with a setting. `seconds` is the duration of the run.

    `why` adds to the checks: missing programs, failures, and files that must not change but did.
    """

    task: str
    language: str
    setting: str
    repeat: int
    outcome: Outcome
    ended: RunStatus | None = None
    why: Text = NO_TEXT
    calls: tuple[Usage, ...] = ()
    """Model calls in order, including those of nested runs."""
    usage: Usage = Usage()
    seconds: float = 0.0
    session: str = ""
    checks: tuple[CheckResult, ...] = ()
    kept: str = ""
    """Path of the copy, if it was kept."""


class Totals(Wire):
    """All attempts of one setting. `low` and `high` are the 95 % interval of the success rate (Wilson)."""

    setting: str
    counted: int
    proved: int
    low: float
    high: float
    other: int
    """Number of attempts that do not count: skipped, not started, stopped, broken."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float | None
    seconds: float


class Ratio(Wire):
    """Usage of the second setting relative to the first (geometric mean over tasks).

    The bounds are absent with fewer than two tasks.
    """

    what: Literal["calls", "prompt_tokens", "completion_tokens", "cost", "seconds"]
    tasks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    differs: bool = False
    """True if the interval excludes 1."""


class Comparison(Wire):
    """Comparison of the second setting with the first, paired by task.

    `difference` is that of the success rates, with its 95 % interval; `p` is the exact sign test.
    """

    tasks: int
    better: int
    worse: int
    difference: float
    low: float
    high: float
    p: float
    tells: bool
    """True if the difference is significant."""
    ratios: tuple[Ratio, ...] = ()


class Evaluation(Wire):
    """The result of an evaluation, as `daiku eval --json` writes it."""

    version: Literal[1] = 1
    settings: tuple[SettingInfo, ...]
    attempts: tuple[EvalAttempt, ...]
    totals: tuple[Totals, ...]
    comparison: Comparison | None = None
    max_cost: float | None = None
    bound_reached: bool = False
    """True if the cost limit ended or prevented runs."""
    interrupted: bool = False


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
