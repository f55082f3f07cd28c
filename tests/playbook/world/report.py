"""The results of a report: kept as JSON, summed up as medians over worlds, and held against the bounds set beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from pydantic import ConfigDict

from daiku.domain.base import Frozen
from tests.playbook.world.drawn import HALF_WAY, TASKS

WINDOW = 20
"""Tasks of which a share is taken, for the curves and for the bounds."""


class Results(Frozen):
    """Which tasks were passed: for each row of the report a text of `1` and `0` for each world; and the tokens of advice that
    a task had on average, for each world."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    seeds: tuple[int, ...]
    tasks: int
    rows: Mapping[str, tuple[str, ...]] = {}
    tokens: Mapping[str, tuple[int, ...]] = {}

    def with_row(self, name: str, passed: tuple[str, ...], tokens: tuple[int, ...] = ()) -> Results:
        told = {**self.tokens, **({name: tokens} if tokens else {})}
        return self.model_copy(update={"rows": {**self.rows, name: passed}, "tokens": told})


class Share(NamedTuple):
    """A share of tasks, in percent: the median over the worlds, and the quarters around it."""

    low: float
    middle: float
    high: float


def loaded(path: Path) -> Results | None:
    """The results that are kept in a file; None where there is none."""
    return Results.model_validate_json(path.read_text()) if path.exists() else None


def share(passed: Sequence[str], first: int, last: int) -> Share:
    """The share of the tasks from `first` to before `last` that were passed."""
    found = sorted(100 * each[first:last].count("1") / (last - first) for each in passed)
    low, middle, high = quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
    return Share(low, middle, high)


def curve(passed: Sequence[str], tasks: int, window: int = WINDOW) -> list[Share]:
    """The shares of all windows of tasks, one after the other."""
    return [share(passed, at, at + window) for at in range(0, tasks - window + 1, window)]


class Bound(NamedTuple):
    """A bound as it was set, what was measured, and whether it is kept."""

    says: str
    measured: str
    kept: bool


def bounds(results: Results) -> list[Bound]:
    """Each bound that the rows at hand can be held against."""
    rows, found = results.rows, list[Bound]()
    for needs, judge in _BOUNDS:
        if all(name in rows for name in needs):
            found.append(judge(*(rows[name] for name in needs)))
    return found


def _middle(passed: Sequence[str], first: int, last: int) -> float:
    return share(passed, first, last).middle


def _flat(off: Sequence[str]) -> Bound:
    whole = _middle(off, 0, TASKS)
    quarters = [_middle(off, at, at + TASKS // 4) for at in range(0, TASKS, TASKS // 4)]
    says = "off: each quarter of the tasks within 5 points of the whole, and at most 40 %"
    told = f"{whole:.0f} %; quarters {', '.join(f'{each:.0f}' for each in quarters)} %"
    return Bound(says, told, whole <= 40 and all(abs(each - whole) <= 5 for each in quarters))


def _rises(on: Sequence[str]) -> Bound:
    first, later = _middle(on, 0, 10), _middle(on, HALF_WAY - WINDOW, HALF_WAY)
    says = "on: from at most 40 % (tasks 1–10) to at least 80 % by task 100 (tasks 81–100)"
    return Bound(says, f"{first:.0f} % → {later:.0f} %", first <= 40 and later >= 80)


def _never_below(on: Sequence[str], off: Sequence[str]) -> Bound:
    apart = [a.middle - b.middle for a, b in zip(curve(on, TASKS), curve(off, TASKS), strict=True)]
    says = "on with 200 tokens: in no window of 20 tasks below off"
    return Bound(says, f"least difference {min(apart):.0f} points", min(apart) >= 0)


def _above(flipped: Sequence[str], off: Sequence[str]) -> Bound:
    mine, theirs = _middle(flipped, HALF_WAY, TASKS), _middle(off, HALF_WAY, TASKS)
    says = "20 % of outcomes flipped: above off (tasks 101–200)"
    return Bound(says, f"{mine:.0f} % against {theirs:.0f} %", mine > theirs)


def _back(what: str) -> Callable[[Sequence[str]], Bound]:
    def judged(passed: Sequence[str]) -> Bound:
        before = _middle(passed, HALF_WAY - WINDOW, HALF_WAY)
        after = _middle(passed, HALF_WAY + 40, HALF_WAY + 60)
        least = min(_middle(passed, at, at + WINDOW) for at in range(HALF_WAY, HALF_WAY + 41, WINDOW))
        says = f"{what} at task 100: within 5 points of tasks 81–100 in tasks 141–160"
        return Bound(says, f"{before:.0f} % → {least:.0f} % → {after:.0f} %", after >= before - 5)

    return judged


def _none_worse(on: Sequence[str], off: Sequence[str]) -> Bound:
    """By the place of a task in its world: how many worlds passed it."""
    pairs = [(a, b) for mine, theirs in zip(on, off, strict=True) for a, b in zip(mine, theirs, strict=True)]
    lost, won = pairs.count(("0", "1")), pairs.count(("1", "0"))
    worse = sum(
        sum(each[at] == "1" for each in on) < sum(each[at] == "1" for each in off) for at in range(TASKS)
    )
    says = "on: no task (by its place, over all worlds) passed more seldom than by off"
    told = f"{worse} of {TASKS}; of single tasks {won} won, {lost} lost"
    return Bound(says, told, worse == 0)


_BOUNDS: tuple[tuple[tuple[str, ...], Callable[..., Bound]], ...] = (
    (("off",), _flat),
    (("on",), _rises),
    (("on, 200 tokens", "off"), _never_below),
    (("on, flipped", "off"), _above),
    (("on, wrong",), _back("20 wrong bullets")),
    (("on, changed",), _back("changed conventions")),
    (("on", "off"), _none_worse),
)


def table(results: Results) -> str:
    """The rows as a table in Markdown: medians, with the quarters around that of the last window."""
    starts = range(0, results.tasks - WINDOW + 1, WINDOW)
    head = ["arm", *(f"{at + 1}–{at + WINDOW}" for at in starts), "quartiles at the end", "tokens a task"]
    lines = [head, ["---"] * len(head)]
    for name, passed in results.rows.items():
        shares = curve(passed, results.tasks)
        last = shares[-1]
        tokens = f"{median(results.tokens[name]):.0f}" if name in results.tokens else ""
        spread = f"{last.low:.0f}–{last.high:.0f}"
        lines.append([name, *(f"{each.middle:.0f}" for each in shares), spread, tokens])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
