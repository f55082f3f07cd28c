"""Proposals: lessons from runs, with their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from daiku.dataclass import dataclass, replace
from daiku.domain.chunks import Chunk, top_runs
from daiku.domain.events import RunFinished
from daiku.domain.held import CurationOperation, Reflected
from daiku.domain.playbook import Bullet, Delta, LearntFrom, Origin, Playbook
from daiku.playbook.rules.sections import SECTIONS, normalize_section
from daiku.texts.rules.patterns import lazy

Taught = Literal["command_replaced", "command_before", "passed_twice", "rejected", "corrected", "insight"]
"""Reasons of a proposal.

A command passed in place of a failed one, made a failed one pass, or passed in two runs; a rejection with a reason; a correction
by the user; an insight of a model.
"""
Redact = Callable[[str], str]
_SPAN = lazy(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed lesson.

    `failed`: the commands that fail according to it. `about`: the bullet that it updates, as named by a
    model; empty for none.
    """

    section: str
    content: str
    why: Taught
    evidence: tuple[LearntFrom, ...]
    keywords: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    origin: Origin = "rule"
    about: str = ""


def find_code_spans(text: str) -> tuple[str, ...]:
    """Return the distinct code spans in `text`, with normalized white space."""
    return tuple(dict.fromkeys(" ".join(span.split()) for span in _SPAN.findall(text) if span.strip()))


def get_place(chunk: Chunk) -> LearntFrom:
    """Return the location of a chunk as evidence."""
    return LearntFrom(session_id=chunk.session, run_id=chunk.run, seq=chunk.seq)


def redact_proposal(proposal: Proposal, redact: Redact) -> Proposal:
    """Return the proposal without secrets."""
    return replace(
        proposal,
        section=redact(proposal.section),
        content=redact(proposal.content),
        keywords=tuple(map(redact, proposal.keywords)),
        failed=tuple(map(redact, proposal.failed)),
    )


USUAL = "common_mistakes"
"""Section of an insight without a built-in section."""


def find_insights(chunks: Sequence[Chunk]) -> tuple[Proposal, ...]:
    """Return the recorded insights as proposals, with the end of their run as evidence."""
    return tuple(
        _to_proposal(operation, place)
        for operation, place in _iter_operations(chunks)
        if operation.type in ("ADD", "UPDATE") and operation.content.strip()
    )


def find_merges_and_removals(
    chunks: Sequence[Chunk], playbook: Playbook, earlier: Sequence[Delta]
) -> tuple[Delta, ...]:
    """Return the requested merges and removals of active bullets; all need review.

    A change that was requested before is left out, whatever was decided on it.
    """
    active = {each.id: each for each in playbook.bullets if each.active}
    known = {(each.type, each.bullet_id, each.bullet_ids) for each in earlier}
    changes: dict[tuple[str, str, tuple[str, ...]], Delta] = {}
    for operation, place in _iter_operations(chunks):
        delta = (
            _merge(operation, place, active)
            if operation.type == "MERGE"
            else _remove(operation, place, active)
        )
        if delta is not None and (key := (delta.type, delta.bullet_id, delta.bullet_ids)) not in known:
            changes.setdefault(key, delta)
    return tuple(changes.values())


def _merge(operation: CurationOperation, place: LearntFrom, active: Mapping[str, Bullet]) -> Delta | None:
    names = tuple(each for each in dict.fromkeys(operation.ids) if each in active)
    if len(names) < 2:
        return None
    first = active[names[0]]
    keywords = dict.fromkeys(word for each in names for word in active[each].keywords)
    return Delta(
        id="",
        type="merge",
        section=first.section,
        content=" ".join(operation.content.split()) or first.content,
        keywords=tuple(keywords),
        bullet_id=first.id,
        bullet_ids=names[1:],
        origin="model",
        why="insight",
        evidence=(place,),
    )


def _remove(operation: CurationOperation, place: LearntFrom, active: Mapping[str, Bullet]) -> Delta | None:
    bullet = active.get(operation.id)
    if operation.type != "REMOVE" or bullet is None:
        return None
    return Delta(
        id="",
        type="remove",
        section=bullet.section,
        content=bullet.content,
        bullet_id=bullet.id,
        origin="model",
        why="insight",
        evidence=(place,),
    )


def _iter_operations(chunks: Sequence[Chunk]) -> Iterator[tuple[CurationOperation, LearntFrom]]:
    """Yield the recorded operations, each with the end of the run that it is drawn from."""
    tops = top_runs(chunks)
    ends = {
        chunk.run: get_place(chunk)
        for chunk in chunks
        if isinstance(chunk.event, RunFinished) and chunk.parent is None
    }
    for chunk in chunks:
        if isinstance(chunk.event, Reflected) and (place := ends.get(tops[chunk.run])) is not None:
            yield from ((each, place) for each in chunk.event.operations)


def _to_proposal(operation: CurationOperation, place: LearntFrom) -> Proposal:
    content = " ".join(operation.content.split())
    section = normalize_section(operation.section)
    return Proposal(
        section=section if section in SECTIONS else USUAL,
        content=content,
        why="insight",
        evidence=(place,),
        keywords=find_code_spans(content),
        origin="model",
        about=operation.id if operation.type == "UPDATE" else "",
    )
