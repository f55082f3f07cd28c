"""The trials of an adaptation, one after the other, and what is decided by them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from daiku.core.playbook.gate.budget import TrialBudget, allowed
from daiku.core.playbook.gate.pairs import Step, steps_of, tally_of
from daiku.core.playbook.gate.rule import Tally, is_settled, verdict_of
from daiku.core.playbook.refused import Refused
from daiku.dataclass import dataclass, field
from daiku.domain.playbook import Delta, GateVerdict, Tried
from daiku.domain.trials import Case, Trial
from daiku.playbook.changing import AfterTrials
from daiku.playbook.gate.arms import Arms, Told, arms_of
from daiku.playbook.gate.spending import Spending, begin
from daiku.playbook.lessons_from_runs import touches_words_of_a_person
from daiku.sdk.adapting.gate import Gate
from daiku.sdk.adapting.report import (
    Adaptation,
    AdaptationPlan,
    Candidate,
    Ending,
    Outcome,
    Result,
    TrialMade,
)
from daiku.texts.text import NO_TEXT, Text

HOPELESS = 6
"""Cases that could not be tried, and no other one could: then those that follow cannot be tried either."""
Tells = Callable[[TrialMade], None]
"""Hears of each trial that has ended."""
_THEN: dict[GateVerdict, AfterTrials] = {"kept": "accept", "refused": "reject", "undecided": "wait"}
_RESULT: dict[str, Result] = {"applied": "applied", "rejected": "rejected", "proposed": "waits"}


@dataclass(slots=True)
class _Adapting:
    """An adaptation that is under way."""

    gate: Gate
    plan: AdaptationPlan
    cases: dict[str, Case]
    budget: TrialBudget
    spending: Spending
    tell: Tells
    stopped: asyncio.Event
    ended: Ending = "done"
    why: Text = NO_TEXT
    unknown: bool = False
    untriable: set[str] = field(default_factory=set[str])
    """Cases of which no trial could be made: they are not begun again for another change."""
    could: bool = False
    """Whether any trial could be made."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])


async def adapt(
    gate: Gate, plan: AdaptationPlan, max_cost: float | None, tell: Tells, stopped: asyncio.Event
) -> Adaptation:
    """Try the changes of the plan, and decide on each when its trials are over: kept is applied, refused rejected, undecided
    waits. `max_cost` (USD) bounds all trials; None: nothing does. When `stopped` is set the trial under way is ended, and
    nothing more is decided. Raises DaikuError."""
    cases = {each.run: each for each in await gate.cases()}
    spending = begin(gate.journal.database)
    adapting = _Adapting(gate, plan, cases, TrialBudget(max_cost), spending, tell, stopped)
    if why := gate.why_not():
        adapting.ended, adapting.why = "cannot_try", why
    try:
        for candidate in plan.candidates:
            adapting.outcomes.append(await _outcome(adapting, candidate))
    finally:
        spending.end()
    return Adaptation(
        plan=plan,
        ended=adapting.ended,
        why=adapting.why,
        max_cost=max_cost,
        outcomes=tuple(adapting.outcomes),
        trials=adapting.budget.trials,
        spent=adapting.budget.spent,
        unknown_cost=adapting.unknown,
    )


async def _outcome(adapting: _Adapting, candidate: Candidate) -> Outcome:
    """What becomes of one change."""
    delta = candidate.delta
    if candidate.why_not is not None:
        return Outcome(delta=delta.id, result="not_tried", why_not=candidate.why_not)
    if adapting.ended != "done":
        return Outcome(delta=delta.id, result="not_tried", why_not="not_reached")
    gate = adapting.gate
    arms = arms_of(gate.stores, delta, gate.settings, gate.finder)  # with all that was kept just now
    if isinstance(arms, Refused):
        return Outcome(delta=delta.id, result="not_tried", why_not="impossible", message=arms.message)
    tried = await _tried(adapting, candidate, arms)
    if tried is None:
        return Outcome(delta=delta.id, result="not_tried", why_not="not_reached")
    return _decided(gate, delta, tried)


async def _tried(adapting: _Adapting, candidate: Candidate, arms: Arms) -> Tried | None:
    """What the trials of a change showed; None where nothing is to be decided by them."""
    cases = [adapting.cases[name] for name in candidate.runs if name in adapting.cases]
    begun = adapting.budget
    made: list[Trial] = []
    judged: list[Case] = []
    for number, case in enumerate(cases):
        tally = tally_of(judged, made)
        if is_settled(tally, len(cases) - number, candidate.bound):
            break
        told = await arms.told(case.question)
        if case.run in adapting.untriable:
            judged.append(case)
        elif told.differs:  # else what was kept just now says the same: there is nothing to try
            trials = await _trials(adapting, candidate, case, told, steps_of(number, adapting.plan.rounds))
            made += trials
            judged += [case] if trials else []
        if adapting.ended != "done":
            break
    if adapting.ended in ("interrupted", "cannot_try") or not judged:
        return None
    return _seen(tally_of(judged, made), candidate.bound, judged, begun, adapting.budget)


def _seen(tally: Tally, bound: float, judged: Sequence[Case], begun: TrialBudget, now: TrialBudget) -> Tried:
    return Tried(
        verdict=verdict_of(tally, bound),
        better=tally.better,
        worse=tally.worse,
        same=tally.same,
        untried=tally.untried,
        chance=tally.chance,
        bound=bound,
        runs=tuple(each.run for each in judged),
        trials=now.trials - begun.trials,
        cost=now.spent - begun.spent,
    )


async def _trials(
    adapting: _Adapting, candidate: Candidate, case: Case, told: Told, steps: Sequence[Step]
) -> list[Trial]:
    """The trials of one case, as many of them as may be made."""
    made: list[Trial] = []
    for number, step in enumerate(steps):
        of_pair = 2 - number % 2  # one alone shows nothing: both are begun, or none
        free = allowed(adapting.budget, (of_pair + 1) * case.cost)  # and one to spare
        if free is None or adapting.stopped.is_set():
            adapting.ended = "bound" if free is None else "interrupted"
            break
        trial = await _trial(adapting, case, told, step, free)
        if trial is None:
            break
        made.append(trial)
        now, most = adapting.budget.trials, adapting.plan.trials
        adapting.tell(TrialMade(delta=candidate.delta.id, number=now, most=most, trial=trial))
        adapting.could = adapting.could or trial.passed is not None
        if trial.passed is None:
            _note_untried(adapting, case, trial)
            break  # its pair shows nothing any more, and another round would hardly be possible
    return made


def _note_untried(adapting: _Adapting, case: Case, trial: Trial) -> None:
    if not trial.tokens and not trial.cost:  # no model was asked: it is the case, or this machine
        adapting.untriable.add(case.run)
    if not adapting.could and len(adapting.untriable) >= HOPELESS:
        adapting.ended, adapting.why = "cannot_try", trial.why


async def _trial(adapting: _Adapting, case: Case, told: Told, step: Step, max_cost: float) -> Trial | None:
    """One trial, on record before it begins and after it has ended; None where it was ended before it was over."""
    lessons = told.with_it if step.arm == "with" else told.without
    adapting.spending.trial()
    trying = adapting.gate.tries(case, lessons, arm=step.arm, nth=step.round, max_cost=max_cost)
    trial = await _until_stopped(asyncio.ensure_future(trying), adapting.stopped)
    if trial is None:
        adapting.ended, adapting.unknown = "interrupted", True
        return None
    adapting.spending.spent(trial.cost)
    adapting.budget = adapting.budget.after(trial.cost)
    return trial


async def _until_stopped(trial: asyncio.Future[Trial], stopped: asyncio.Event) -> Trial | None:
    """What the trial showed; None where it was ended before it was over."""
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({trial, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not trial.done():
            trial.cancel()
            await asyncio.wait({trial})
    return None if trial.cancelled() else trial.result()


def _decided(gate: Gate, delta: Delta, tried: Tried) -> Outcome:
    """Carry out what the rule says, in one transaction with what was seen. What is doubted, and what changes words of a
    person, is not applied without one."""
    store = gate.stores[delta.scope]
    then = _THEN[tried.verdict]
    if then == "accept" and (delta.doubts or touches_words_of_a_person(store, delta)):
        then = "wait"
    done = store.tried(delta.id, tried, then)
    if isinstance(done, Refused):
        return Outcome(delta=delta.id, result="not_tried", seen=tried, message=done.message)
    return Outcome(delta=delta.id, bullet=done.bullet_id, result=_RESULT[done.status], seen=tried)
