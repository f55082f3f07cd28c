"""Replay of a recorded session without a model; it must produce the same events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daiku.dataclass import dataclass, field
from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, HandoffEnd, HandoffStart, RunStarted, ToolResponse
from daiku.domain.runs import EnvironmentFact
from daiku.playbook.rules.run_text import is_reflection
from daiku.run.ending import ParentLink, build_handoff_end
from daiku.run.recorded.compare import (
    Difference,
    Mismatch,
    Uncompared,
    compare,
    find_mismatch,
    list_uncompared,
)
from daiku.run.recorded.from_record import RecordedPorts, RecordEnded, ReplyInterrupted
from daiku.run.rules import loop
from daiku.run.rules.state.environment import FOLDER
from daiku.run.rules.state.fold import apply, fold
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.tasks import TASK_LOOP
from daiku.team.table import ALL_AGENTS


class Replayed(Frozen):
    """Result of a replay: counts of events and runs, the first difference, and what was not compared."""

    events: int
    runs: int = 0
    nested: int = 0
    difference: Difference | None = None
    normalised: tuple[Uncompared, ...] = ()


async def replay(chunks: Sequence[Chunk]) -> Replayed:
    """Replay every run of a session, nested runs separately, and compare each durable event."""
    durable = [c for c in chunks if c.event.type not in EPHEMERAL and not is_reflection(c)]
    runs: dict[str, list[Chunk]] = {}
    for chunk in durable:
        runs.setdefault(chunk.run, []).append(chunk)
    state, events, mismatches = State(), 0, [_find_nested_mismatch(durable)]
    for run in runs.values():
        nested = run[0].parent is not None
        recorded = RecordedPorts(run, _hand_back(run[0]) if nested else None)
        final_state = await _play(recorded, State() if nested else state)
        state = state if nested else final_state
        events += len(recorded.replayed)
        mismatches.append(find_mismatch(run, recorded.replayed))
    earliest = min((m for m in mismatches if m is not None), key=lambda m: m.chunk.seq, default=None)
    return Replayed(
        events=events,
        runs=len(runs),
        nested=sum(run[0].parent is not None for run in runs.values()),
        difference=None if earliest is None else earliest.locate(durable),
        normalised=list_uncompared(c.event for c in durable),
    )


async def _play(recorded: RecordedPorts, state: State) -> State:
    record = Recorder(state, recorded.write)
    first = recorded.events[0]
    try:
        if isinstance(first, RunStarted):
            record(first)
        while not await _play_reply(record, recorded):
            pass
    except* RecordEnded:  # parallel calls each raise it
        pass
    recorded.close(record.state)
    return fold(recorded.events, state)


async def _play_reply(record: Recorder, recorded: RecordedPorts) -> bool:
    """Continue the replay until the run ends; False if a reply was cut off and the model was requested again."""
    try:
        await loop.run(record, recorded)
    except ReplyInterrupted:
        return not recorded.has_more_replies
    return True


# ---- consistency of nested runs with their parents


def _find_agent(start: Chunk) -> Agent | None:
    """Return the built-in agent of a nested run from its first chunk; None if a program defined its own."""
    agent, event = ALL_AGENTS.get(start.agent), start.event
    if agent is None or not isinstance(event, RunStarted):
        return agent
    return None if agent.reads_brief and not event.told else agent


def _hand_back(start: Chunk) -> Callable[[State], object] | None:
    """Return the function that builds a nested run's handover from its state; None if it is unknown."""
    agent = _find_agent(start)
    return None if agent is None or agent.stage is None else agent.stage.hand_back


def _find_nested_mismatch(chunks: Sequence[Chunk]) -> Mismatch | None:
    """Return the first inconsistency between a nested run and its parent."""
    session = _SessionState()
    for chunk in chunks:
        if (mismatch := session.find_mismatch_of_next(chunk)) is not None:
            return mismatch
        session.add(chunk)
    return None


@dataclass(eq=False, slots=True)
class _SessionState:
    """A session up to some chunk: its runs' states, first chunks, and hand-offs."""

    states: dict[str, State] = field(default_factory=dict[str, State])
    handoffs: dict[str, HandoffStart] = field(default_factory=dict[str, HandoffStart])
    first: dict[str, Chunk] = field(default_factory=dict[str, Chunk])

    def add(self, chunk: Chunk) -> None:
        self.first.setdefault(chunk.run, chunk)
        key = self._key(chunk.run)
        self.states[key] = apply(self.states.get(key, State()), chunk.event)
        if isinstance(chunk.event, HandoffStart) and chunk.event.run:
            self.handoffs[chunk.event.run] = chunk.event

    def find_mismatch_of_next(self, chunk: Chunk) -> Mismatch | None:
        """Return the inconsistency of the next chunk; None if there is none."""
        event = chunk.event
        if chunk.parent is not None and chunk.run not in self.first:
            return self._compare_start(chunk, self._state(chunk.parent))
        if isinstance(event, HandoffEnd) and event.run:
            return self._compare_end(chunk, event)
        if isinstance(event, ToolResponse) and event.outcome in ("done", "failed"):
            return self._find_missing_end(chunk, event.id)
        return None

    def _key(self, run: str) -> str:
        """Return the key of a run's state; consecutive top-level runs share one."""
        return run if self.first[run].parent is not None else ""

    def _state(self, run: str) -> State:
        return self.states[self._key(run)] if run in self.first else State()

    def _compare_start(self, chunk: Chunk, parent: State) -> Mismatch | None:
        """Compare the start of a nested run with its parent's state."""
        start, event = self.handoffs.get(chunk.run), chunk.event
        if start is None:
            if any(not start.run for start in parent.nested.open.values()):
                return None  # an older journal has no run ids here
            return Mismatch(chunk, f"{event.type} of a nested run", f"no {HandoffStart.type}")
        if not isinstance(event, RunStarted):
            return Mismatch(chunk, event.type, RunStarted.type)
        if chunk.agent != start.to:
            return Mismatch(chunk, f"agent {chunk.agent}", f"agent {start.to}")
        limits, rounds = parent.request.asked_limits, event.limits.max_rounds
        if 0 < rounds <= (limits.max_rounds or rounds):  # an explorer has its own, lower limit
            limits = limits.model_copy(update={"max_rounds": rounds})
        expected = {
            "prompt": start.request,
            "mode": parent.request.mode,
            "tainted": parent.tainted,
            "limits": limits,
        }
        return compare(chunk, event.model_copy(update=expected))

    def _compare_end(self, chunk: Chunk, event: HandoffEnd) -> Mismatch | None:
        """Compare the recorded result of a nested run with the one built from its state."""
        first, start, state = self.first.get(event.run), self.handoffs.get(event.run), self._state(event.run)
        if first is None or start is None or state.finished is None:
            return Mismatch(chunk, f"{event.type} of {event.run}", "a nested run that has not ended")
        agent, builtin = _find_agent(first), ALL_AGENTS.get(first.agent)
        is_followed = agent is not None and agent.name == TASK_LOOP.name
        link = ParentLink(chunk.agent, event.run, start.call_id, self._ran_in_copy(first, state), is_followed)
        if agent is None:  # its own `on_handoff_return` is unknown, so the result is not compared
            own = Agent(first.agent, Prompt("agents/coordinator"))
            mismatch = compare(chunk, build_handoff_end(own, state, link), ("result",))
            if mismatch is None or builtin is None:
                return mismatch
            agent = builtin  # cancelled before it received its prompt
        return compare(chunk, build_handoff_end(agent, state, link))

    def _ran_in_copy(self, first: Chunk, state: State) -> bool:
        """Return True if the run used a copy of the project: its folder differs from its parent's."""
        event = first.event
        facts = event.environment if isinstance(event, RunStarted) else state.conversation.environment
        parent_facts = self._state(first.parent or "").conversation.environment
        return _folder(facts) not in ("", _folder(parent_facts))

    def _find_missing_end(self, chunk: Chunk, call: str) -> Mismatch | None:
        """Return a mismatch if a call ended before a nested run that it started."""
        calls = self._state(chunk.run).nested.open.items()
        start = next((s for key, s in calls if key == call or key.startswith(f"{call}:")), None)
        if start is None:
            return None
        return Mismatch(chunk, f"{chunk.event.type} of {call}", f"no {HandoffEnd.type} of {start.to} yet")


def _folder(facts: Sequence[EnvironmentFact]) -> str:
    return next((fact.text for fact in facts if fact.name == FOLDER), "")
