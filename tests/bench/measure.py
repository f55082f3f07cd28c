"""How things are measured: alternating rounds in one process on one core, medians, ratios."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

ROOT = Path(__file__).parents[2]
OWN_CORE, OTHER_CORE = 0, 1

Work = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `ours` against `floor`, both in `unit`. `goal` and `wish` (the goal beyond
    it) are ratios; None where a line only informs."""

    what: str
    floor: float
    ours: float
    goal: float | None
    unit: str = "ms"
    wish: float | None = None
    against: str = ""
    ratio_of_rounds: float | None = None

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios where there were rounds: less moved by a busy machine."""
        return self.ours / self.floor if self.ratio_of_rounds is None else self.ratio_of_rounds

    @property
    def ok(self) -> bool:
        return self.goal is None or self.ratio <= self.goal


@dataclass(frozen=True, slots=True)
class Rounds:
    """What alternating rounds of a floor and of ours gave, in seconds."""

    floor: tuple[float, ...]
    ours: tuple[float, ...]

    def per(self, floor: float, ours: float) -> Rounds:
        """The same for one of `floor` and one of `ours` equal parts."""
        return Rounds(tuple(s / floor for s in self.floor), tuple(s / ours for s in self.ours))

    def row(
        self,
        what: str,
        goal: float | None,
        *,
        scale: float,
        unit: str,
        against: str,
        wish: float | None = None,
    ) -> Row:
        """A row of medians; `scale` turns the seconds of a round into `unit`."""
        ratio = median(o / f for f, o in zip(self.floor, self.ours, strict=True))
        return Row(
            what, median(self.floor) * scale, median(self.ours) * scale, goal, unit, wish, against, ratio
        )


async def cpu(work: Work) -> float:
    """Seconds of this process's CPU that `work` takes; the collector's share belongs to it."""
    gc.collect()
    began = process_time()
    await work()
    return process_time() - began


async def alternate(
    floor: Work, ours: Work, rounds: int, clock: Callable[[Work], Awaitable[float]] = cpu
) -> Rounds:
    """Both, in turn, after a round of each that does not count; every second round the other way about."""
    await floor()
    await ours()
    floors, own = list[float](), list[float]()
    for number in range(rounds):
        order = ((floor, floors), (ours, own))
        for work, into in order if number % 2 else reversed(order):
            into.append(await clock(work))
    return Rounds(tuple(floors), tuple(own))


def times(work: Callable[[], object], rounds: int) -> list[float]:
    """Seconds of each of `rounds` calls."""
    found = list[float]()
    for _ in range(rounds):
        began = perf_counter()
        work()
        found.append(perf_counter() - began)
    return found


def pin(cpu_number: int, pid: int = 0) -> None:
    """Keep a process (this one: 0) on one core, where the system can and has two."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {cpu_number})


@contextmanager
def service() -> Generator[str]:
    """The model service in a process of its own on the other core; its address."""
    command = [sys.executable, "-m", "tests.bench.server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        pin(OTHER_CORE, process.pid)
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
