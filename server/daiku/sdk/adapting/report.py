"""What an adaptation is going to do, and what it did, as people and programs see it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from daiku.domain.base import Localizable, Wire
from daiku.domain.playbook import Delta, Tried
from daiku.domain.trials import Trial
from daiku.playbook.gate.spending import CutOff
from daiku.texts.text import NO_TEXT, Text

WhyNotTried: TypeAlias = Literal["doubted", "counters", "impossible", "too_few", "nothing_new", "not_reached"]
"""Why a change is not tried: its text is doubted; it changes only counters; it cannot be made any more; too few of the runs
on record that may judge it would be told anything else with it; most of them it was tried on before; the end came before
its turn."""
Result: TypeAlias = Literal["applied", "rejected", "waits", "not_tried"]
"""What became of a change."""
Ending: TypeAlias = Literal["done", "bound", "interrupted", "cannot_try", "declined"]
"""How an adaptation ended: `bound`: no more may be spent; `cannot_try`: trials cannot be made here, and `why` says why;
`declined`: the person did not want it."""


class RecordedCase(Wire):
    """A run on record that can be done again. `held_out`: it judges; else it teaches."""

    run: str
    session: str
    question: str
    held_out: bool
    cost: float
    tokens: int


class Candidate(Wire):
    """A change that waits, and on which runs it is tried: at most `trials`, for about `estimated_cost` USD and
    `estimated_tokens`, at the `bound` of this look at it, which `least` cases that differ can reach. With `why_not` it is not tried."""

    delta: Delta
    runs: tuple[str, ...] = ()
    trials: int = 0
    estimated_cost: float = 0.0
    estimated_tokens: int = 0
    bound: float = 0.0
    least: int = 0
    why_not: WhyNotTried | None = None


class AdaptationPlan(Wire):
    """What an adaptation is going to do. `learnt`: so many changes were learnt anew from the sessions that teach, of which
    there are `teaching`; `rounds` and `most_cases` are the rule's. `cut_off` are earlier ones that were killed."""

    rounds: int
    most_cases: int
    cases: tuple[RecordedCase, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    trials: int = 0
    estimated_cost: float = 0.0
    estimated_tokens: int = 0
    teaching: int = 0
    learnt: int = 0
    cut_off: tuple[CutOff, ...] = ()


class Outcome(Localizable):
    """What became of one change, and what trials showed of it. `message`: why a decision could not be carried out."""

    delta: str
    bullet: str = ""
    result: Result
    seen: Tried | None = None
    why_not: WhyNotTried | None = None
    message: Text = NO_TEXT


class Adaptation(Localizable):
    """What an adaptation did, and what it spent, in USD. `unknown_cost`: a trial was interrupted, and what it cost is not
    known."""

    plan: AdaptationPlan
    ended: Ending = "done"
    why: Text = NO_TEXT
    max_cost: float | None = None
    outcomes: tuple[Outcome, ...] = ()
    trials: int = 0
    spent: float = 0.0
    unknown_cost: bool = False


class TrialMade(Wire):
    """A trial that has ended, for whoever watches: the change that it was of, and how many there are at most."""

    delta: str
    number: int
    most: int
    trial: Trial
