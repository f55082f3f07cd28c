"""Whether nested runs on record fit the runs around them: what they were given, and what came back of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from daiku.agents.agent import Agent, Prompt
from daiku.core.state.environment import FOLDER
from daiku.core.state.fold import apply
from daiku.core.state.state import State
from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, HandoffEnd, HandoffStart, RunStarted, ToolResponse
from daiku.domain.runs import EnvironmentFact
from daiku.runs.ending import Between, handed_back
from daiku.runs.recorded.compare import Difference, at, difference_at

TOP = ""
"""Under this name stands the state of the person's own runs, which follow one another."""
OPTIONAL = frozenset({"handover", "error", "deeds", "usage"})
"""What a journal leaves out where there is nothing of it."""


def agent_of(start: Chunk) -> Agent | None:
    """The agent of a nested run, by its first chunk; None where it is none of ours, or may be a program's own of the same
    name: that one is told its request as it is."""
    found, event = _of_ours(start.agent), start.event
    if found is None or not isinstance(event, RunStarted):
        return found
    return None if found.reads_brief and not event.told else found


def _of_ours(name: str) -> Agent | None:
    from daiku.agents.table import ALL_AGENTS  # when used

    return ALL_AGENTS.get(name)


def first_misfit(chunks: Sequence[Chunk]) -> Difference | None:
    """The first place where a nested run and the run around it do not fit together."""
    seen = _Seen()
    for chunk in chunks:
        if chunk.event.type in EPHEMERAL:
            continue
        if (found := seen.misfit(chunk)) is not None:
            return found
        seen.add(chunk)
    return None


@dataclass(eq=False, slots=True)
class _Seen:
    """What was seen of a session until now: how each of its runs stands, and where the nested ones began."""

    states: dict[str, State] = field(default_factory=dict[str, State])
    begun: dict[str, HandoffStart] = field(default_factory=dict[str, HandoffStart])
    first: dict[str, Chunk] = field(default_factory=dict[str, Chunk])

    def add(self, chunk: Chunk) -> None:
        """Take one more chunk of the session."""
        key = self._key(chunk)
        self.first.setdefault(chunk.run, chunk)
        self.states[key] = apply(self.states.get(key, State()), chunk.event)
        if isinstance(chunk.event, HandoffStart) and chunk.event.run:
            self.begun[chunk.event.run] = chunk.event

    def misfit(self, chunk: Chunk) -> Difference | None:
        """How the chunk does not fit what was seen; None where it does."""
        if chunk.parent is not None and chunk.run not in self.first:
            return self._wrong_start(chunk)
        match chunk.event:
            case HandoffEnd(run=run) if run:
                return self._wrong_end(chunk, chunk.event)
            case ToolResponse(outcome="done" | "failed"):
                return self._not_back(chunk, chunk.event.id)
            case _:
                return None

    def _key(self, chunk: Chunk) -> str:
        return TOP if chunk.parent is None else chunk.run

    def _around(self, parent: str) -> State:
        first = self.first.get(parent)
        return self.states.get(self._key(first), State()) if first is not None else State()

    def _wrong_start(self, chunk: Chunk) -> Difference | None:
        given, event = self.begun.get(chunk.run), chunk.event
        if given is None:
            old = any(not start.run for start in self._around(chunk.parent or "").nested.open.values())
            return None if old else at(chunk, f"{event.type} of a nested run", "no handoff_start")
        if not isinstance(event, RunStarted):
            return at(chunk, event.type, RunStarted.type)
        around = self._around(chunk.parent or "")
        limits = around.request.asked_limits.model_copy(update={"max_rounds": event.limits.max_rounds})
        made = event.model_copy(
            update={
                "prompt": given.request,
                "mode": around.request.mode,
                "tainted": around.tainted,
                "limits": limits if _fewer(event.limits.max_rounds, around) else around.request.asked_limits,
            }
        )
        return difference_at(chunk, made) or (
            None if chunk.agent == given.to else at(chunk, f"agent {chunk.agent}", f"agent {given.to}")
        )

    def _wrong_end(self, chunk: Chunk, event: HandoffEnd) -> Difference | None:
        first, begun = self.first.get(event.run), self.begun.get(event.run)
        state = self.states.get(event.run, State())
        if first is None or begun is None or state.finished is None:
            return at(chunk, f"{event.type} of {event.run}", "a nested run that has not ended")
        agent = agent_of(first)
        followed = agent is not None and agent.name == _task_loop()
        between = Between(chunk.agent, event.run, begun.call_id, self._elsewhere(first, state), followed)
        named = {*cast("dict[str, object]", json.loads(chunk.data)), *OPTIONAL} - {"texts"}
        if agent is not None:
            return difference_at(chunk, handed_back(agent, state, between), named)
        own = Agent(first.agent, Prompt("agents/coordinator"))
        found = difference_at(chunk, handed_back(own, state, between), named - {"result"})
        if found is None or (ours := _of_ours(first.agent)) is None:
            return found
        return difference_at(
            chunk, handed_back(ours, state, between), named
        )  # given up before it was told anything

    def _elsewhere(self, first: Chunk, state: State) -> bool:
        """Whether the run worked in a copy of the project: it was told of another folder than the run around it."""
        event = first.event
        own = event.environment if isinstance(event, RunStarted) else state.conversation.environment
        around = self._around(first.parent or "").conversation.environment
        return _folder(own) not in ("", _folder(around))

    def _not_back(self, chunk: Chunk, call: str) -> Difference | None:
        """A call that was answered while a run that it started has not come back."""
        key = self._key(chunk)
        open_calls = self.states.get(key, State()).nested.open
        left = next((s for k, s in open_calls.items() if k == call or k.startswith(f"{call}:")), None)
        if left is None:
            return None
        return at(chunk, f"{chunk.event.type} of {call}", f"no {HandoffEnd.type} of {left.to} yet")


def _fewer(rounds: int, around: State) -> bool:
    """Whether a nested run may have so few rounds of its own (an explorer)."""
    asked = around.request.asked_limits.max_rounds
    return 0 < rounds <= (asked or rounds)


def _folder(facts: Sequence[EnvironmentFact]) -> str:
    return next((fact.text for fact in facts if fact.name == FOLDER), "")


def _task_loop() -> str:
    from daiku.agents.coding.tasks import TASK_LOOP  # when used

    return TASK_LOOP.name
