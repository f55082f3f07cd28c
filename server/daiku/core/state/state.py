"""What a run knows: its state as one value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Never

from daiku.core.proof.evidence import Done
from daiku.core.state.repetition import Trail
from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    Reminder,
    RulesText,
    RunFinished,
)
from daiku.domain.messages import Message, Usage, UserMessage
from daiku.domain.runs import Mode, RunLimits
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan
from daiku.domain.work.research import Research

NOTHING: Mapping[str, Never] = MappingProxyType({})
CHECKER = "daiku"
"""The agent of Daiku's own words to the model; what they are for is their `reminder`."""
PERSON = "user"
"""The agent of what a person says while a run is under way."""


class State(NamedTuple):
    """A run's state, and the conversation that it stands in.

    `pending` are the calls of the last reply without a response, in order; `started` those of
    them that are under way. `held` waits until no call is pending: a message between calls and
    their results would be refused by every provider. `errors` counts replies in a row of which no
    call could be carried out; `went_well` says that one of the present reply was. `given` are calls
    that the run was handed instead of a model, `used` the plain texts of results that some of these use (by
    call). `trail` shows whether it goes round in circles. `done`
    is what it really did, its nested runs included; `research` what it found on the web; `handoffs` are those that are under way (by call)
    and `returned` those that came back, in order; `nested_rounds` are the turns of the latter, `rounds_before` those
    of its limit that were not this run's from the start.
    `progress` is what the model was last told of how the plans stand.
    `last_plan` is the plan that was changed last in this run, empty where none was. `draft` is what was shown of
    a reply that was cut off. `rounds` are replies that a model was asked for: those that are worked out are none.
    `unattended`: something needed a person, and nobody was there. `reminders` says what the
    model was told by Daiku itself and still holds, in order: an objection (it cannot end like this) may come again. `limits` are what
    bounds this run, `asks_model` is False where its replies are worked out (`began` is the place of its request in `messages`, `said` what the person said
    since), `asked_limits` what was asked for: its nested runs get these.
    """

    started_run: bool = False
    asks_model: bool = True
    prompt: str = ""
    request: str = ""
    mode: Mode = "act"
    model: str = ""
    limits: RunLimits = RunLimits()
    given: tuple[ToolCall, ...] = ()
    used: Mapping[str, str] = NOTHING
    brief: Brief | None = None
    done: Done = Done()
    research: Research = Research()
    handoffs: Mapping[str, HandoffStart] = NOTHING
    returned: tuple[HandoffEnd, ...] = ()
    nested_rounds: int = 0
    rounds_before: int = 0
    reminders: tuple[Reminder, ...] = ()
    asked_limits: RunLimits = RunLimits()
    began: int = 0
    said: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    started: frozenset[str] = frozenset()
    held: tuple[UserMessage, ...] = ()
    approvals: Mapping[str, ApprovalAsked] = NOTHING
    decisions: Mapping[str, ApprovalGiven] = NOTHING
    inputs: Mapping[str, InputAsked] = NOTHING
    answers: Mapping[str, InputGiven] = NOTHING
    text: str = ""
    draft: str = ""
    rounds: int = 0
    usage: Usage = Usage()
    context_tokens: int = 0
    errors: int = 0
    went_well: bool = False
    trail: Trail = Trail()
    tainted: bool = False
    plans: tuple[Plan, ...] = ()
    last_plan: str = ""
    unattended: bool = False
    progress: str = ""
    rules: Mapping[str, RulesText] = NOTHING
    failure: Failure | None = None
    finished: RunFinished | None = None
