"""The trials of an adaptation, one after the other, and what is decided by them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from daiku.core.playbook.gate.budget import Purse, allowed
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
class _Round:
    """An adaptation that is under way."""

    gate: Gate
    plan: AdaptationPlan
    cases: dict[str, Case]
    purse: Purse
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
    round_ = _Round(gate, plan, cases, Purse(max_cost), spending, tell, stopped)
    if why := gate.why_not():
        round_.ended, round_.why = "cannot_try", why
    try:
        for candidate in plan.candidates:
            round_.outcomes.append(await _outcome(round_, candidate))
    finally:
        spending.end()
    return Adaptation(
        plan=plan,
        ended=round_.ended,
        why=round_.why,
        max_cost=max_cost,
        outcomes=tuple(round_.outcomes),
        trials=round_.purse.trials,
        spent=round_.purse.spent,
        unknown_cost=round_.unknown,
    )


async def _outcome(round_: _Round, candidate: Candidate) -> Outcome:
    """What becomes of one change."""
    delta = candidate.delta
    if candidate.why_not is not None:
        return Outcome(delta=delta.id, result="not_tried", why_not=candidate.why_not)
    if round_.ended != "done":
        return Outcome(delta=delta.id, result="not_tried", why_not="not_reached")
    gate = round_.gate
    arms = arms_of(gate.stores, delta, gate.settings, gate.finder)  # with all that was kept just now
    if isinstance(arms, Refused):
        return Outcome(delta=delta.id, result="not_tried", why_not="impossible", message=arms.message)
    tried = await _tried(round_, candidate, arms)
    if tried is None:
        return Outcome(delta=delta.id, result="not_tried", why_not="not_reached")
    return _decided(gate, delta, tried)


async def _tried(round_: _Round, candidate: Candidate, arms: Arms) -> Tried | None:
    """What the trials of a change showed; None where nothing is to be decided by them."""
    cases = [round_.cases[name] for name in candidate.runs if name in round_.cases]
    begun = round_.purse
    made: list[Trial] = []
    judged: list[Case] = []
    for number, case in enumerate(cases):
        tally = tally_of(judged, made)
        if is_settled(tally, len(cases) - number, candidate.bound):
            break
        told = await arms.told(case.question)
        if case.run in round_.untriable:
            judged.append(case)
        elif told.differs:  # else what was kept just now says the same: there is nothing to try
            trials = await _trials(round_, candidate, case, told, steps_of(number, round_.plan.rounds))
            made += trials
            judged += [case] if trials else []
        if round_.ended != "done":
            break
    if round_.ended in ("interrupted", "cannot_try") or not judged:
        return None
    return _seen(tally_of(judged, made), candidate.bound, judged, begun, round_.purse)


def _seen(tally: Tally, bound: float, judged: Sequence[Case], begun: Purse, now: Purse) -> Tried:
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
    round_: _Round, candidate: Candidate, case: Case, told: Told, steps: Sequence[Step]
) -> list[Trial]:
    """The trials of one case, as many of them as may be made."""
    made: list[Trial] = []
    for number, step in enumerate(steps):
        of_pair = 2 - number % 2  # one alone shows nothing: both are begun, or none
        free = allowed(round_.purse, (of_pair + 1) * case.cost)  # and one to spare
        if free is None or round_.stopped.is_set():
            round_.ended = "bound" if free is None else "interrupted"
            break
        trial = await _trial(round_, case, told, step, free)
        if trial is None:
            break
        made.append(trial)
        now, most = round_.purse.trials, round_.plan.trials
        round_.tell(TrialMade(delta=candidate.delta.id, number=now, most=most, trial=trial))
        round_.could = round_.could or trial.passed is not None
        if trial.passed is None:
            _note_untried(round_, case, trial)
            break  # its pair shows nothing any more, and another round would hardly be possible
    return made


def _note_untried(round_: _Round, case: Case, trial: Trial) -> None:
    if not trial.tokens and not trial.cost:  # no model was asked: it is the case, or this machine
        round_.untriable.add(case.run)
    if not round_.could and len(round_.untriable) >= HOPELESS:
        round_.ended, round_.why = "cannot_try", trial.why


async def _trial(round_: _Round, case: Case, told: Told, step: Step, max_cost: float) -> Trial | None:
    """One trial, on record before it begins and after it has ended; None where it was ended before it was over."""
    lessons = told.with_it if step.arm == "with" else told.without
    round_.spending.trial()
    trying = round_.gate.tries(case, lessons, arm=step.arm, nth=step.round, max_cost=max_cost)
    trial = await _until_stopped(asyncio.ensure_future(trying), round_.stopped)
    if trial is None:
        round_.ended, round_.unknown = "interrupted", True
        return None
    round_.spending.spent(trial.cost)
    round_.purse = round_.purse.after(trial.cost)
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
