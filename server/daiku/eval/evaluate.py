"""Run all attempts of an evaluation in parallel, within its cost limit, until they end or are interrupted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from daiku.dataclass import dataclass, field
from daiku.domain.base import new_id
from daiku.domain.errors import Failure, UsageError
from daiku.eval.attempt import Job, Setting, attempt, check_model, not_made, why_not_safe
from daiku.eval.compare import compare, totals_of
from daiku.eval.results import Attempt, Evaluation, SettingInfo
from daiku.eval.task import Task
from daiku.store.copyfolders import close_copy_folder, open_copy_folder
from daiku.texts.text import Text, text


class Pot(NamedTuple):
    """`most` USD in all, 0 for no bound; `held` is set aside for runs under way, one entry each."""

    most: float = 0.0
    spent: float = 0.0
    ended: int = 0
    held: tuple[float, ...] = ()

    @property
    def free(self) -> float:
        return self.most - self.spent - sum(self.held)


def draw(pot: Pot, jobs: int, own: float) -> tuple[Pot, float] | None:
    """Reserve the cost of one more run: its own limit `own` (0: none), at most an equal share of what is free for
    concurrent runs. None if the mean cost so far exceeds what is free. The limit is 0 if nothing bounds the run."""
    if not pot.most:
        return pot._replace(held=(*pot.held, 0.0)), own
    likely = pot.spent / pot.ended if pot.ended else 0.0
    if pot.free <= 0 or pot.free < likely:
        return None
    share = max(pot.free / max(1, jobs - len(pot.held)), min(pot.free, 2 * likely))
    limit = min(own, share) if own else share
    return pot._replace(held=(*pot.held, limit)), limit


def settle(pot: Pot, limit: float, cost: float) -> Pot:
    """Give back what was set aside for a run, and charge what it cost."""
    held = list(pot.held)
    held.remove(limit if pot.most else 0.0)
    return pot._replace(spent=pot.spent + cost, ended=pot.ended + 1, held=tuple(held))


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be evaluated: every task under every setting, `repeat` times, `jobs` at once. `max_cost` in USD
    bounds all of it, 0: nothing does. `home` is Daiku's. `network`: the user allowed it to the setup
    of tasks that ask for it."""

    tasks: tuple[Task, ...]
    settings: tuple[Setting, ...]
    home: Path
    repeat: int = 1
    jobs: int = 1
    max_cost: float = 0.0
    keep: bool = False
    locale: str = "en"
    network: bool = False


Told = Callable[[Attempt, int, int], None]
"""Hears of each attempt that is over, its number and the number of all."""


@dataclass(slots=True)
class _Round:
    """What is left to do, what is under way, and what came of the rest."""

    wanted: Wanted
    folder: Path
    tell: Told
    stopped: asyncio.Event
    left: list[tuple[Task, Setting, int]]
    pot: Pot
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    running: set[asyncio.Task[Attempt]] = field(default_factory=set["asyncio.Task[Attempt]"])
    done: list[Attempt] = field(default_factory=list[Attempt])
    bound: bool = False


async def evaluate(wanted: Wanted, tell: Told, stopped: asyncio.Event) -> Evaluation:
    """Make every attempt. When `stopped` is set, active runs end and no others begin. Raises UsageError if the
    sandbox of the settings is missing, DaikuError if a model cannot be used, OSError."""
    if why := why_not_safe(wanted.settings):
        raise UsageError(Failure(kind="usage", message=why, hint=text("eval.no_sandbox.hint")))
    for setting in wanted.settings:
        await check_model(setting, wanted.home)
    copies = await asyncio.to_thread(open_copy_folder, wanted.home / "evals", new_id("ev"))
    jobs = [
        (task, setting, repeat)
        for repeat in range(1, wanted.repeat + 1)
        for task in wanted.tasks
        for setting in wanted.settings
    ]
    round_ = _Round(wanted, copies.path, tell, stopped, list(jobs), Pot(wanted.max_cost))
    ending = asyncio.create_task(_end_when_stopped(round_))
    try:
        await asyncio.gather(*(_work(round_) for _ in range(min(wanted.jobs, len(jobs)))))
    finally:
        ending.cancel()
        for task in round_.running:
            task.cancel()
        if round_.running:
            await asyncio.wait(round_.running)
        await asyncio.shield(asyncio.to_thread(close_copy_folder, copies, keep=wanted.keep))
    for task, setting, repeat in round_.left:
        why = text("eval.interrupted") if stopped.is_set() else text("eval.bound")
        round_.done.append(not_made(task, setting, repeat, "not_started", why))
    return _summed_up(round_, jobs)


async def _end_when_stopped(round_: _Round) -> None:
    await round_.stopped.wait()
    for task in round_.running:
        task.cancel()
    async with round_.changed:
        round_.changed.notify_all()


async def _work(round_: _Round) -> None:
    """Make one attempt after the other until none is left, or none may be begun."""
    while True:
        async with round_.changed:
            drawn = await _next(round_)
        if drawn is None:
            return
        number, (task, setting, repeat), limit = drawn
        place = round_.folder / f"{number:03d}"
        wanted = round_.wanted
        job = Job(
            task, setting, repeat, wanted.home, place, wanted.locale, limit, wanted.keep, wanted.network
        )
        running = asyncio.create_task(attempt(job))
        round_.running.add(running)
        if round_.stopped.is_set():
            running.cancel()
        await asyncio.wait({running})
        round_.running.discard(running)
        made = _ended(running, job)
        async with round_.changed:
            round_.pot = settle(round_.pot, limit, made.usage.cost or 0.0)
            cut = made.outcome == "stopped" and made.ended == "limit"
            round_.bound = round_.bound or (cut and round_.pot.free <= limit)  # else the next one has more
            round_.done.append(made)
            round_.changed.notify_all()
        round_.tell(made, len(round_.done), _count(round_))


def _count(round_: _Round) -> int:
    wanted = round_.wanted
    return len(wanted.tasks) * len(wanted.settings) * wanted.repeat


async def _next(round_: _Round) -> tuple[int, tuple[Task, Setting, int], float] | None:
    """Return the next attempt and its cost limit; None if there is none. Waits for active runs to free budget."""
    while round_.left and not round_.stopped.is_set() and not round_.bound:
        task, setting, _ = round_.left[0]
        own = task.file.limits.max_cost or setting.config.limits.max_cost
        drawn = draw(round_.pot, round_.wanted.jobs, own)
        if drawn is not None:
            round_.pot, limit = drawn
            chosen = round_.left.pop(0)
            return _count(round_) - len(round_.left), chosen, limit
        if not round_.pot.held:
            round_.bound = True
            break
        await round_.changed.wait()
    return None


def _ended(running: asyncio.Task[Attempt], job: Job) -> Attempt:
    """What an attempt came to, also where it was ended before it began, or a fault of ours ended it."""
    if running.cancelled():
        return not_made(job.task, job.setting, job.repeat, "not_started", text("eval.interrupted"))
    if (wrong := running.exception()) is not None:
        log.error("an attempt at %s failed", job.task.name, exc_info=wrong)
        return not_made(job.task, job.setting, job.repeat, "broken", Text(f"{type(wrong).__name__}: {wrong}"))
    return running.result()


def _summed_up(round_: _Round, jobs: Sequence[tuple[Task, Setting, int]]) -> Evaluation:
    """Everything in the order in which it was asked for."""
    place = {(task.name, setting.label, repeat): n for n, (task, setting, repeat) in enumerate(jobs)}
    attempts = sorted(round_.done, key=lambda a: place[a.task, a.setting, a.repeat])
    wanted = round_.wanted
    labels = [setting.label for setting in wanted.settings]
    return Evaluation(
        settings=tuple(
            SettingInfo(
                label=s.label,
                model=s.model,
                overrides=s.overrides,
                lessons=tuple(each.id for each in s.lessons or ()),
            )
            for s in wanted.settings
        ),
        attempts=tuple(attempts),
        totals=tuple(totals_of(label, attempts) for label in labels),
        comparison=compare(labels[0], labels[1], attempts) if len(labels) == 2 else None,
        max_cost=wanted.max_cost or None,
        bound_reached=round_.bound or any(a.outcome == "stopped" and a.ended == "limit" for a in attempts),
        interrupted=round_.stopped.is_set(),
    )
