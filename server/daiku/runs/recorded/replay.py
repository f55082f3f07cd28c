"""Play a recorded session again without a model, nested runs too: the core must come to the same events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from daiku.core.playbook.insights.run_text import is_of_a_look
from daiku.core.run import loop
from daiku.core.state.fold import fold
from daiku.core.state.recorder import Recorder
from daiku.core.state.state import State
from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, RunStarted
from daiku.runs.recorded.compare import Difference, first_difference, placed
from daiku.runs.recorded.from_record import Broken, Over, Recorded
from daiku.runs.recorded.nesting import agent_of, first_misfit
from daiku.runs.recorded.normalised import Normalised, normalised


class Replayed(Frozen):
    """How many runs were played again, how many of them were nested, how many events were compared, the first difference
    (None: the same to the end), and what was not compared."""

    events: int
    runs: int = 0
    nested: int = 0
    difference: Difference | None = None
    normalised: tuple[Normalised, ...] = ()


async def replay(chunks: Sequence[Chunk]) -> Replayed:
    """Replay every run of a session and compare each durable event: the person's own runs in their order, each
    nested run by itself, and what it was given and handed back with the run around it. A model's later look at a run is none of
    it."""
    kept = [c for c in chunks if c.event.type not in EPHEMERAL and not is_of_a_look(c)]
    state, compared, found = State(), 0, [first_misfit(kept)]
    own, nested = _by_run([c for c in kept if c.parent is None]), _by_run([c for c in kept if c.parent])
    for each in (*own, *nested):
        below = each[0].parent is not None
        recorded = Recorded(each, _handed(each[0]) if below else None)
        after = await _play(recorded, State() if below else state)
        state = state if below else after
        compared += len(recorded.made)
        found.append(first_difference(each, recorded.made))
    first = min((each for each in found if each is not None), key=lambda each: each.seq, default=None)
    return Replayed(
        events=compared,
        runs=len(own) + len(nested),
        nested=len(nested),
        difference=None if first is None else placed(first, kept),
        normalised=normalised(c.event for c in kept),
    )


def _handed(start: Chunk) -> Callable[[State], object] | None:
    """What the agent of a nested run hands back of a state; None where that is not known."""
    agent = agent_of(start)
    return None if agent is None or agent.stage is None else partial(agent.stage.hand_back)


def _by_run(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    runs: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        runs.setdefault(chunk.run, []).append(chunk)
    return list(runs.values())


async def _play(recorded: Recorded, state: State) -> State:
    record = Recorder(state, recorded.write)
    first = recorded.events[0]
    try:
        if isinstance(first, RunStarted):
            record(first)
        while not await _played(record, recorded):
            pass
    except* Over:  # of calls side by side, each says it
        pass
    recorded.close(record.state)
    return fold(recorded.events, state)


async def _played(record: Recorder, recorded: Recorded) -> bool:
    """Play on until the run ends; False where a reply was cut off, and the model was asked again later."""
    try:
        await loop.run(record, recorded)
    except Broken:
        return not recorded.asked_again
    return True
