"""Read the history of a session: runs and their states, forks of it, and the checkpoints that forks copy."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    InputAsked,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.tools import Effect, ToolCall
from daiku.domain.work.patches import Irrevocable
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.team.rules.proof.evidence import Evidence, exit_code_of, merge_evidence
from daiku.texts.rules.truncate import truncate_middle
from daiku.trace.sessions import KeepsSessions
from daiku.workspace.checkpoints import CheckpointStore


def events_of(chunks: Sequence[Chunk], until_run: str | None = None) -> list[Event]:
    """The events of top-level runs, those after `until_run` left out."""
    top = [c for c in chunks if c.parent is None]
    if until_run is None:
        return [c.event for c in top]
    last = max(i for i, c in enumerate(top) if c.run == until_run)
    return [c.event for c in top[: last + 1]]


def starts_of(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Where the person's runs begin, without the nested ones."""
    return [c for c in chunks if isinstance(c.event, RunStarted) and c.parent is None]


def last_start(chunks: Sequence[Chunk]) -> Chunk:
    return next(c for c in reversed(chunks) if isinstance(c.event, RunStarted) and c.parent is None)


def state_of(chunks: Sequence[Chunk], run: str) -> State:
    """The state of `run`, a nested one too."""
    own = [c for c in chunks if c.run == run]
    if own[0].parent is None:
        return fold(events_of(chunks, until_run=run))
    return fold(c.event for c in own)


def states_of_runs(chunks: Sequence[Chunk]) -> Iterator[State]:
    """The state at the end of each of the person's runs, in their order; every event is folded once."""
    events, state = events_of(chunks), State()
    starts = [n for n, event in enumerate(events) if isinstance(event, RunStarted)]
    for start, end in pairwise((*starts, len(events))):
        state = fold(events[start:end], state)
        yield state


def evidence_of_session(journal: KeepsSessions, session: str) -> Evidence:
    """What the runs of a session did together, by the record; nothing of a session that has not begun."""
    states = states_of_runs(journal.chunks(session)) if session else ()
    return reduce(merge_evidence, (state.done for state in states), Evidence())


def allowed_paths(journal: KeepsSessions, session: str) -> frozenset[str]:
    """The paths of the calls in a session of which a person said that they may be made."""
    from daiku.guard.rules.referenced_paths import touched_paths  # when used

    events = [chunk.event for chunk in journal.chunks(session)] if session else []
    given = {e.approval_id for e in events if isinstance(e, ApprovalGiven) and _is_yes(e)}
    asked = (e for e in events if isinstance(e, ApprovalAsked) and e.approval_id in given)
    calls = (ToolCall(id=each.call_id, tool=each.tool, args=each.args) for each in asked)
    return frozenset(posixpath.normpath(path) for call in calls for path in touched_paths(call))


def begun_calls(journal: KeepsSessions, session: str) -> frozenset[str]:
    """The calls of a session that were begun and have no answer."""
    events = [chunk.event for chunk in journal.chunks(session)] if session else []
    answered = {event.id for event in events if isinstance(event, ToolResponse)}
    return frozenset(e.id for e in events if isinstance(e, ToolCallEvent)) - answered


def _is_yes(given: ApprovalGiven) -> bool:
    return given.decision.startswith("allow") and not given.unattended


def asked_by(chunks: Sequence[Chunk], question: str) -> str | None:
    """The run that asked for an approval or an answer of that id."""
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=key) | InputAsked(input_id=key) if key == question:
                return chunk.run
            case _:
                pass
    return None


def open_nested_starts(chunks: Sequence[Chunk], run: str) -> tuple[Chunk, ...]:
    """The starts of nested runs of `run` that have no end, the innermost first."""
    ended = {c.run for c in chunks if isinstance(c.event, RunFinished)}
    below, found = {run}, list[Chunk]()
    for chunk in chunks:
        if isinstance(chunk.event, RunStarted) and chunk.parent in below:
            below.add(chunk.run)
            if chunk.run not in ended:
                found.insert(0, chunk)
    return tuple(found)


def copy_checkpoints(store: CheckpointStore, session: str, chunks: Sequence[Chunk]) -> Mapping[str, str]:
    """Copy for `session` the checkpoints that the chunks name; return the new ids by the old ones."""
    names = dict.fromkeys(name for chunk in chunks if (name := checkpoint_of(chunk)) is not None)
    restored: set[str] = set()
    for chunk in chunks:
        if isinstance(chunk.event, Restored):
            back, redo = store.get(chunk.event.checkpoint_id), store.get(chunk.event.redo or "")
            restored |= set(redo.undid) if redo is not None else set[str]()
            restored -= set(back.undid) if back is not None and back.kind == "restore" else set[str]()
    return store.copy(session, tuple(names), restored)


def checkpoint_of(chunk: Chunk) -> str | None:
    """Return the checkpoint taken before the change that the chunk records; None for other chunks."""
    match chunk.event:
        case CheckpointEvent(checkpoint_id=name) | Edit(checkpoint_id=name) | Review(checkpoint_id=name):
            return name
        case Restored(redo=name):
            return name
        case _:
            return None


def first_after(store: CheckpointStore, chunks: Sequence[Chunk], at_seq: int) -> str | None:
    """The first checkpoint after `at_seq`: going back to it brings back the files as they were there."""
    before = {checkpoint_of(chunk) for chunk in chunks if chunk.seq <= at_seq}
    later = (checkpoint_of(chunk) for chunk in chunks if chunk.seq > at_seq)
    return next((n for n in later if n is not None and n not in before and store.get(n) is not None), None)


# ---- what restoring files cannot undo

OUTSIDE: tuple[Effect | None, ...] = ("command", "network", "mcp", None)
"""Effects beyond the files that checkpoints keep; None: a tool that is not known here now."""
_SHOWN = 200


def irrevocable(
    chunks: Sequence[Chunk], checkpoint_id: str, effect: Callable[[str], Effect | None]
) -> tuple[Irrevocable, ...]:
    """Return the calls with outside effects since the checkpoint, with exit codes. `effect`: of a tool."""
    since = next((c.seq for c in chunks if checkpoint_of(c) == checkpoint_id), None)
    if since is None:
        return ()
    ends = {c.event.id: c.event for c in chunks if isinstance(c.event, ToolResponse) and c.seq > since}
    found: list[Irrevocable] = []
    for chunk in chunks:
        event = chunk.event
        if not isinstance(event, ToolCallEvent) or (chunk.seq < since and event.id not in ends):
            continue
        outside = effect(event.tool) in OUTSIDE and not event.tool.startswith("web/")
        command = _command(event.tool, event.args) if outside else ""
        end = ends.get(event.id)
        if command and (end is None or _ran(end)):
            code = exit_code_of(end.data) if end is not None else None
            found.append(Irrevocable(command=command, exit_code=code, time=chunk.time))
    return tuple(found)


def _command(tool: str, args: JsonObject) -> str:
    """What ran, as a person knows it."""
    if tool == "shell/run":
        return truncate_middle(str(args.get("command", "")), _SHOWN)
    if tool == "git/commit":
        return truncate_middle(f"git commit -m {args.get('message', '')!r}", _SHOWN)
    given = ", ".join(f"{name}={value}" for name, value in args.items())
    return truncate_middle(f"{tool} {given}".strip(), _SHOWN)


def _ran(end: ToolResponse) -> bool:
    """A call that a person or the guard refused, or whose arguments were wrong, never ran."""
    match end.outcome:
        case "done" | "interrupted" | "cancelled":
            return True
        case "denied" | "rejected" | "unattended" | "not_run":
            return False
        case "failed":
            pass
    data = end.data or {}
    if "exitCode" in data:
        return data.get("started") is not False
    return end.ok or end.duration_ms > 0
