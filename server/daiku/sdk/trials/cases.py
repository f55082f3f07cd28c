"""Which runs on record can be done again: their start is known, and commands show whether the work was done."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from daiku.core.commands.judge import LOOKING, read_only
from daiku.core.proof.evidence import Evidence, merge_evidence, plain_command
from daiku.domain.chunks import Chunk
from daiku.domain.events import RunStarted, ToolCallEvent
from daiku.domain.runs import is_success
from daiku.domain.trials import Case, Check, ProjectStart
from daiku.domain.work.handovers import Proof
from daiku.domain.work.patches import FileStat
from daiku.runs.recorded.history import starts_of, state_of, states_of_runs
from daiku.trace.journal import Journal
from daiku.trace.starts import Starts

MOST_SESSIONS = 400
"""The newest sessions, which are looked through."""
MOST_CHECKS = 5


async def cases_of(journal: Journal, home: Path, roots: tuple[Path, ...]) -> tuple[Case, ...]:
    """The cases of these folders, the newest first. `home` is Daiku's, where starts are kept. Raises DaikuError."""
    if len(roots) != 1:
        return ()
    starts = Starts(home / "starts")
    kept = starts.sessions()
    sessions = journal.list_sessions(limit=MOST_SESSIONS, workspace=str(roots[0]))
    found: list[Case] = []
    for session in (each.session_id for each in sessions if each.session_id in kept):
        await asyncio.sleep(0)  # a journal is read here, and there may be many
        chunks = journal.chunks(session)
        for run, start in starts.of(session).items():
            case = _case(chunks, run, start) if start.why is None else None
            found += [case] if case is not None else []
    return tuple(found)


def _case(chunks: Sequence[Chunk], run: str, start: ProjectStart) -> Case | None:
    """The case that a run makes, if it does."""
    own = [chunk for chunk in chunks if chunk.run == run]
    if not own or not isinstance(own[0].event, RunStarted) or own[0].agent != "coordinator":
        return None
    begun, state = own[0].event, state_of(chunks, run)
    ended = state.finished
    if ended is None or ended.status == "cancelled" or begun.tainted:
        return None
    shown = _checks(chunks, begun.prompt, state.done, start.root) if is_success(ended.status) else ()
    checks = tuple(shown) or _checks_of_later_runs(chunks, run, begun.prompt, state.done, start.root)
    if not checks:
        return None
    usage = ended.usage
    return Case(
        run=run,
        session=own[0].session,
        question=begun.prompt,
        start=start,
        checks=checks[:MOST_CHECKS],
        model=begun.model,
        cost=usage.cost or 0.0,
        tokens=usage.prompt_tokens + usage.completion_tokens,
    )


def _checks(chunks: Sequence[Chunk], question: str, done: Evidence, root: str) -> Iterator[Check]:
    """The commands that showed at the end that the work was done."""
    calls = {c.event.id: c.event for c in chunks if isinstance(c.event, ToolCallEvent)}
    for proof in done.proofs:
        call = calls.get(proof.ref)
        if proof.kind == "exit_code" and call is not None and _shows(proof, call, done, question, root):
            yield Check(command=proof.subject)


def _checks_of_later_runs(
    chunks: Sequence[Chunk], run: str, question: str, done: Evidence, root: str
) -> tuple[Check, ...]:
    """The commands that failed in `run`, whose work `done` is, and passed in the next run of its session that shows any
    of them: what it was asked can be done, and these commands show it."""
    if not done.red:
        return ()
    runs, together = [start.run for start in starts_of(chunks)], done
    for state in islice(states_of_runs(chunks), runs.index(run) + 1, None):
        together = merge_evidence(together, state.done)
        if state.finished is None or not is_success(state.finished.status):
            continue
        checks = _checks(chunks, question, together, root)
        if found := tuple(check for check in checks if plain_command(check.command) in done.red):
            return found
    return ()


def _shows(proof: Proof, call: ToolCallEvent, done: Evidence, question: str, root: str) -> bool:
    """Whether a command that passed would show the same in a copy: it needed nothing but the project, it did not pass
    before as well, and it is not about files that only this run gave their names."""
    command = proof.subject
    needs_more = call.args.get("network") or call.args.get("stdin") or call.args.get("sandbox") is False
    if not proof.ok or proof.remarks or needs_more or root in command:
        return False
    if plain_command(command) not in done.red and read_only(command, LOOKING):
        return False
    return not any(_is_own(stat, command, question) for stat in done.files)


def _is_own(stat: FileStat, command: str, question: str) -> bool:
    """Whether a command names a file that the run made without being asked for it by its name."""
    name = stat.path.rpartition("/")[2]
    words = {word.rpartition("/")[2] for word in re.split(r"[\s;&|()'\"=:]+", command)}
    return stat.kind == "create" and name in words and name not in question
