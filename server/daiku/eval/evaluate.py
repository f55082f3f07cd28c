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
from daiku.eval.attempt import (
    AttemptJob,
    Setting,
    build_unstarted,
    check_model,
    find_sandbox_problem,
    run_attempt,
)
from daiku.eval.compare import EvalAttempt, Evaluation, SettingInfo, compare, compute_totals
from daiku.eval.copies import Task
from daiku.store.copyfolders import close_copy_folder, open_copy_folder
from daiku.texts.text import Text, text


class Pot(NamedTuple):
    """Cost budget in USD: `most` in total, 0 for no limit. `held`: reserved for active runs."""

    most: float = 0.0
    spent: float = 0.0
    ended: int = 0
    held: tuple[float, ...] = ()

    @property
    def free(self) -> float:
        return self.most - self.spent - sum(self.held)


def reserve(pot: Pot, jobs: int, own: float) -> tuple[Pot, float] | None:
    """Reserve the cost of one more run; return the budget and the run's limit (0: none).

    The limit is at most `own` (0: none) and an equal share of what is free. None if the mean cost exceeds
    what is free.
    """
    if not pot.most:
        return pot._replace(held=(*pot.held, 0.0)), own
    likely = pot.spent / pot.ended if pot.ended else 0.0
    if pot.free <= 0 or pot.free < likely:
        return None
    share = max(pot.free / max(1, jobs - len(pot.held)), min(pot.free, 2 * likely))
    limit = min(own, share) if own else share
    return pot._replace(held=(*pot.held, limit)), limit


def charge(pot: Pot, limit: float, cost: float) -> Pot:
    """Release the reservation of a run, and charge its cost."""
    held = list(pot.held)
    held.remove(limit if pot.most else 0.0)
    return pot._replace(spent=pot.spent + cost, ended=pot.ended + 1, held=tuple(held))


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """An evaluation: every task with every setting, `repeat` times, with `jobs` in parallel.

    `max_cost` in USD limits all of it, 0 for none. `home` is Daiku's. `network`: the user allowed network
    access to the setup of tasks.
    """

    tasks: tuple[Task, ...]
    settings: tuple[Setting, ...]
    home: Path
    repeat: int = 1
    jobs: int = 1
    max_cost: float = 0.0
    keep: bool = False
    locale: str = "en"
    network: bool = False


OnAttempt = Callable[[EvalAttempt, int, int], None]
"""Callback for each finished attempt, with its number and the total."""


@dataclass(slots=True)
class _Round:
    """State of an evaluation: remaining, active, and finished attempts."""

    plan: EvaluationPlan
    folder: Path
    on_attempt: OnAttempt
    stopped: asyncio.Event
    remaining: list[tuple[Task, Setting, int]]
    pot: Pot
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    running: set[asyncio.Task[EvalAttempt]] = field(default_factory=set["asyncio.Task[EvalAttempt]"])
    results: list[EvalAttempt] = field(default_factory=list[EvalAttempt])
    is_over_budget: bool = False


async def evaluate(plan: EvaluationPlan, on_attempt: OnAttempt, stopped: asyncio.Event) -> Evaluation:
    """Run every attempt. When `stopped` is set, active runs end and no others start.

    Raises UsageError if a configured sandbox is missing, DaikuError if a model cannot be used, OSError.
    """
    if why := find_sandbox_problem(plan.settings):
        raise UsageError(Failure(kind="usage", message=why, hint=text("eval.no_sandbox.hint")))
    for setting in plan.settings:
        await check_model(setting, plan.home)
    copies = await asyncio.to_thread(open_copy_folder, plan.home / "evals", new_id("ev"))
    jobs = [
        (task, setting, repeat)
        for repeat in range(1, plan.repeat + 1)
        for task in plan.tasks
        for setting in plan.settings
    ]
    round_ = _Round(plan, copies.path, on_attempt, stopped, list(jobs), Pot(plan.max_cost))
    ending = asyncio.create_task(_cancel_when_stopped(round_))
    try:
        await asyncio.gather(*(_work(round_) for _ in range(min(plan.jobs, len(jobs)))))
    finally:
        ending.cancel()
        for task in round_.running:
            task.cancel()
        if round_.running:
            await asyncio.wait(round_.running)
        await asyncio.shield(asyncio.to_thread(close_copy_folder, copies, keep=plan.keep))
    for task, setting, repeat in round_.remaining:
        why = text("eval.interrupted") if stopped.is_set() else text("eval.bound")
        round_.results.append(build_unstarted(task, setting, repeat, "not_started", why))
    return _summarize(round_, jobs)


async def _cancel_when_stopped(round_: _Round) -> None:
    await round_.stopped.wait()
    for task in round_.running:
        task.cancel()
    async with round_.changed:
        round_.changed.notify_all()


async def _work(round_: _Round) -> None:
    """Run attempts until none is left or may start."""
    while True:
        async with round_.changed:
            next_attempt = await _take_next(round_)
        if next_attempt is None:
            return
        number, (task, setting, repeat), limit = next_attempt
        place = round_.folder / f"{number:03d}"
        plan = round_.plan
        job = AttemptJob(task, setting, repeat, plan.home, place, plan.locale, limit, plan.keep, plan.network)
        running = asyncio.create_task(run_attempt(job))
        round_.running.add(running)
        if round_.stopped.is_set():
            running.cancel()
        await asyncio.wait({running})
        round_.running.discard(running)
        result = _get_result(running, job)
        async with round_.changed:
            round_.pot = charge(round_.pot, limit, result.usage.cost or 0.0)
            was_cut = result.outcome == "stopped" and result.ended == "limit"
            round_.is_over_budget = round_.is_over_budget or (
                was_cut and round_.pot.free <= limit
            )  # otherwise the next one gets more
            round_.results.append(result)
            round_.changed.notify_all()
        round_.on_attempt(result, len(round_.results), _count(round_))


def _count(round_: _Round) -> int:
    plan = round_.plan
    return len(plan.tasks) * len(plan.settings) * plan.repeat


async def _take_next(round_: _Round) -> tuple[int, tuple[Task, Setting, int], float] | None:
    """Return the next attempt and its cost limit; None if there is none. Waits for active runs to free budget."""
    while round_.remaining and not round_.stopped.is_set() and not round_.is_over_budget:
        task, setting, _ = round_.remaining[0]
        own = task.file.limits.max_cost or setting.config.limits.max_cost
        reserved = reserve(round_.pot, round_.plan.jobs, own)
        if reserved is not None:
            round_.pot, limit = reserved
            chosen = round_.remaining.pop(0)
            return _count(round_) - len(round_.remaining), chosen, limit
        if not round_.pot.held:
            round_.is_over_budget = True
            break
        await round_.changed.wait()
    return None


def _get_result(running: asyncio.Task[EvalAttempt], job: AttemptJob) -> EvalAttempt:
    """Return the result of an attempt, also if it was cancelled or failed unexpectedly."""
    if running.cancelled():
        return build_unstarted(job.task, job.setting, job.repeat, "not_started", text("eval.interrupted"))
    if (wrong := running.exception()) is not None:
        log.error("an attempt at %s failed", job.task.name, exc_info=wrong)
        return build_unstarted(
            job.task, job.setting, job.repeat, "broken", Text(f"{type(wrong).__name__}: {wrong}")
        )
    return running.result()


def _summarize(round_: _Round, jobs: Sequence[tuple[Task, Setting, int]]) -> Evaluation:
    """Return the evaluation, with attempts in the requested order."""
    place = {(task.name, setting.label, repeat): n for n, (task, setting, repeat) in enumerate(jobs)}
    attempts = sorted(round_.results, key=lambda a: place[a.task, a.setting, a.repeat])
    plan = round_.plan
    labels = [setting.label for setting in plan.settings]
    return Evaluation(
        settings=tuple(
            SettingInfo(
                label=s.label,
                model=s.model,
                overrides=s.overrides,
                lessons=tuple(each.id for each in s.lessons or ()),
            )
            for s in plan.settings
        ),
        attempts=tuple(attempts),
        totals=tuple(compute_totals(label, attempts) for label in labels),
        comparison=compare(labels[0], labels[1], attempts) if len(labels) == 2 else None,
        max_cost=plan.max_cost or None,
        bound_reached=round_.is_over_budget
        or any(a.outcome == "stopped" and a.ended == "limit" for a in attempts),
        interrupted=round_.stopped.is_set(),
    )
