"""History of a session: its runs and their states, forks, and their checkpoints."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from daiku.run.ending import end
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.run.run_log import Listener, RunLog, open_log
from daiku.run.services import RunServices
from daiku.team.rules.proof.evidence import Evidence, find_exit_code, merge_evidence
from daiku.texts.rules.truncate import truncate_middle
from daiku.trace.sessions import SessionStore
from daiku.workspace.checkpoints import CheckpointStore


def events_of(chunks: Sequence[Chunk], until_run: str | None = None) -> list[Event]:
    """Return the events of top-level runs, up to the end of `until_run` if given."""
    top = [c for c in chunks if c.parent is None]
    if until_run is None:
        return [c.event for c in top]
    end = max(i for i, c in enumerate(top) if c.run == until_run)
    return [c.event for c in top[: end + 1]]


def starts_of(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the start chunks of top-level runs."""
    return [c for c in chunks if isinstance(c.event, RunStarted) and c.parent is None]


def last_start(chunks: Sequence[Chunk]) -> Chunk:
    return next(c for c in reversed(chunks) if isinstance(c.event, RunStarted) and c.parent is None)


def state_of(chunks: Sequence[Chunk], run: str) -> State:
    """Return the state of `run`, which may be nested."""
    own = [c for c in chunks if c.run == run]
    if own[0].parent is None:
        return fold(events_of(chunks, until_run=run))
    return fold(c.event for c in own)


def states_of_runs(chunks: Sequence[Chunk]) -> Iterator[State]:
    """Yield the final state of each top-level run, in order. Each event is folded once."""
    events, state = events_of(chunks), State()
    starts = [n for n, event in enumerate(events) if isinstance(event, RunStarted)]
    for start, stop in pairwise((*starts, len(events))):
        state = fold(events[start:stop], state)
        yield state


def evidence_of_session(journal: SessionStore, session: str) -> Evidence:
    """Return the combined evidence of a session's runs; empty evidence for a new session."""
    states = states_of_runs(journal.chunks(session)) if session else ()
    return reduce(merge_evidence, (state.done for state in states), Evidence())


def allowed_paths(journal: SessionStore, session: str) -> frozenset[str]:
    """Return the paths of the calls in a session that a user approved."""
    from daiku.guard.rules.referenced_paths import touched_paths  # when used

    events = [chunk.event for chunk in journal.chunks(session)] if session else []
    approved_ids = {e.approval_id for e in events if isinstance(e, ApprovalGiven) and _is_approved_by_user(e)}
    approvals = (e for e in events if isinstance(e, ApprovalAsked) and e.approval_id in approved_ids)
    calls = (ToolCall(id=each.call_id, tool=each.tool, args=each.args) for each in approvals)
    return frozenset(posixpath.normpath(path) for call in calls for path in touched_paths(call))


def open_calls(journal: SessionStore, session: str) -> frozenset[str]:
    """Return the ids of a session's calls that started and have no result."""
    events = [chunk.event for chunk in journal.chunks(session)] if session else []
    ended = {event.id for event in events if isinstance(event, ToolResponse)}
    return frozenset(e.id for e in events if isinstance(e, ToolCallEvent)) - ended


def _is_approved_by_user(given: ApprovalGiven) -> bool:
    return given.decision.startswith("allow") and not given.unattended


def find_asking_run(chunks: Sequence[Chunk], question: str) -> str | None:
    """Return the run that asked for the approval or input with this id, or None."""
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=key) | InputAsked(input_id=key) if key == question:
                return chunk.run
            case _:
                pass
    return None


def open_nested_starts(chunks: Sequence[Chunk], run: str) -> tuple[Chunk, ...]:
    """Return the starts of nested runs of `run` that have not ended, innermost first."""
    ended = {c.run for c in chunks if isinstance(c.event, RunFinished)}
    descendants, open_starts = {run}, list[Chunk]()
    for chunk in chunks:
        if isinstance(chunk.event, RunStarted) and chunk.parent in descendants:
            descendants.add(chunk.run)
            if chunk.run not in ended:
                open_starts.insert(0, chunk)
    return tuple(open_starts)


def copy_checkpoints(store: CheckpointStore, session: str, chunks: Sequence[Chunk]) -> Mapping[str, str]:
    """Copy the checkpoints named by the chunks for `session`; return the new ids by old id."""
    names = dict.fromkeys(name for chunk in chunks if (name := checkpoint_of(chunk)) is not None)
    restored: set[str] = set()
    for chunk in chunks:
        if isinstance(chunk.event, Restored):
            checkpoint, redo = store.get(chunk.event.checkpoint_id), store.get(chunk.event.redo or "")
            restored |= set(redo.undid) if redo is not None else set[str]()
            restored -= (
                set(checkpoint.undid)
                if checkpoint is not None and checkpoint.kind == "restore"
                else set[str]()
            )
    return store.copy(session, tuple(names), restored)


def checkpoint_of(chunk: Chunk) -> str | None:
    """Return the checkpoint taken before the chunk's change; None for other chunks."""
    match chunk.event:
        case CheckpointEvent(checkpoint_id=name) | Edit(checkpoint_id=name) | Review(checkpoint_id=name):
            return name
        case Restored(redo=name):
            return name
        case _:
            return None


def first_checkpoint_after(store: CheckpointStore, chunks: Sequence[Chunk], at_seq: int) -> str | None:
    """Return the first checkpoint after `at_seq`; restoring it restores the files as of `at_seq`."""
    earlier = {checkpoint_of(chunk) for chunk in chunks if chunk.seq <= at_seq}
    later = (checkpoint_of(chunk) for chunk in chunks if chunk.seq > at_seq)
    return next((n for n in later if n is not None and n not in earlier and store.get(n) is not None), None)


# ---- effects that restoring files does not undo

OUTSIDE: tuple[Effect | None, ...] = ("command", "network", "mcp", None)
"""Effects that restoring files does not undo; None: an unknown tool."""
_MOST_SHOWN = 200


def irrevocable(
    chunks: Sequence[Chunk], checkpoint_id: str, effect: Callable[[str], Effect | None]
) -> tuple[Irrevocable, ...]:
    """Return the calls with outside effects since the checkpoint. `effect` returns a tool's effect."""
    start = next((c.seq for c in chunks if checkpoint_of(c) == checkpoint_id), None)
    if start is None:
        return ()
    results = {c.event.id: c.event for c in chunks if isinstance(c.event, ToolResponse) and c.seq > start}
    calls: list[Irrevocable] = []
    for chunk in chunks:
        event = chunk.event
        if not isinstance(event, ToolCallEvent) or (chunk.seq < start and event.id not in results):
            continue
        has_outside_effect = effect(event.tool) in OUTSIDE and not event.tool.startswith("web/")
        command = _describe_command(event.tool, event.args) if has_outside_effect else ""
        result = results.get(event.id)
        if command and (result is None or _was_executed(result)):
            code = find_exit_code(result.data) if result is not None else None
            calls.append(Irrevocable(command=command, exit_code=code, time=chunk.time))
    return tuple(calls)


def _describe_command(tool: str, args: JsonObject) -> str:
    """Return the executed command in a form that users recognize."""
    if tool == "shell/run":
        return truncate_middle(str(args.get("command", "")), _MOST_SHOWN)
    if tool == "git/commit":
        return truncate_middle(f"git commit -m {args.get('message', '')!r}", _MOST_SHOWN)
    arguments = ", ".join(f"{name}={value}" for name, value in args.items())
    return truncate_middle(f"{tool} {arguments}".strip(), _MOST_SHOWN)


def _was_executed(result: ToolResponse) -> bool:
    """Return True unless the call was refused or had invalid arguments."""
    match result.outcome:
        case "done" | "interrupted" | "cancelled":
            return True
        case "denied" | "rejected" | "unattended" | "not_run":
            return False
        case "failed":
            pass
    data = result.data or {}
    if "exitCode" in data:
        return data.get("started") is not False
    return result.ok or result.duration_ms > 0


def ignore_chunk(_: Chunk) -> None:
    """Ignore the chunk; the listener if no client follows."""


def from_record(
    services: RunServices, chunks: Sequence[Chunk], run: str, state: State, listen: Listener = ignore_chunk
) -> RunLog:
    """Return the log of a recorded run, nested ones included."""
    first = next(c for c in chunks if c.run == run)
    if services.trace is not None and first.parent is None:
        services.trace.resume(run, chunks)
    agent = services.agents.find_recorded(first.agent)
    return open_log(services, agent, run, first.session, state, listen, first.parent)


@contextmanager
def reopen(services: RunServices, run: str, question: str) -> Generator[RunLog]:
    """Yield the log of the run that asked `question`, holding the session's lock. Raises UsageError."""
    session = services.journal.session_of_run(run)
    lock = services.journal.lock(session)
    try:
        chunks = services.journal.chunks(session)
        asking_run = find_asking_run(chunks, question) or run
        yield from_record(services, chunks, asking_run, state_of(chunks, asking_run))
    finally:
        lock.release()


def add_to_record(services: RunServices, session: str, run: str, *events: Event) -> None:
    """Record a user's action in a session without a live run. Raises UsageError if there is one."""
    lock = services.journal.lock(session)
    try:
        services.journal.writer(session).write(run, None, "user", events)
    finally:
        lock.release()


def end_on_record(log: RunLog, chunks: Sequence[Chunk], listen: Listener = ignore_chunk) -> None:
    """Cancel a run that is not in progress, its nested runs first."""
    for start in open_nested_starts(chunks, log.run):
        nested = from_record(log.services, chunks, start.run, state_of(chunks, start.run), listen)
        end(nested, "cancelled", None)
    end(log, "cancelled", None)
