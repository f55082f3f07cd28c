"""A model's insights on record as proposals, and the merges and removals that it asked for as changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from daiku.domain.chunks import Chunk, top_runs
from daiku.domain.events import RunFinished
from daiku.domain.held import CurationOperation, Reflected
from daiku.domain.playbook import Bullet, Delta, LearntFrom, Playbook
from daiku.playbook.rules.lessons.proposal import Proposal, code_spans
from daiku.playbook.rules.sections import SECTIONS, section_of

USUAL = "common_mistakes"
"""The section of an insight that nobody gave one of ours."""


def insights_of(chunks: Sequence[Chunk]) -> tuple[Proposal, ...]:
    """The insights on record, each with the end of the run that it is drawn from: a place that people can look at, and
    the same however often it is read."""
    return tuple(
        _proposed(asked, place)
        for asked, place in _operations(chunks)
        if asked.type in ("ADD", "UPDATE") and asked.content.strip()
    )


def merges_and_removals(
    chunks: Sequence[Chunk], playbook: Playbook, known: Sequence[Delta]
) -> tuple[Delta, ...]:
    """The merges and removals that a model asked for, of bullets that are active: each waits for a person, whatever the
    settings say. What was asked for once, whatever became of it, is not asked for again."""
    active = {each.id: each for each in playbook.bullets if each.active}
    before = {(each.type, each.bullet_id, each.bullet_ids) for each in known}
    found: dict[tuple[str, str, tuple[str, ...]], Delta] = {}
    for asked, place in _operations(chunks):
        delta = _merge(asked, place, active) if asked.type == "MERGE" else _removal(asked, place, active)
        if delta is not None and (key := (delta.type, delta.bullet_id, delta.bullet_ids)) not in before:
            found.setdefault(key, delta)
    return tuple(found.values())


def _merge(asked: CurationOperation, place: LearntFrom, active: Mapping[str, Bullet]) -> Delta | None:
    named = tuple(each for each in dict.fromkeys(asked.ids) if each in active)
    if len(named) < 2:
        return None
    first = active[named[0]]
    keywords = dict.fromkeys(word for each in named for word in active[each].keywords)
    return Delta(
        id="",
        type="merge",
        section=first.section,
        content=" ".join(asked.content.split()) or first.content,
        keywords=tuple(keywords),
        bullet_id=first.id,
        bullet_ids=named[1:],
        origin="model",
        why="insight",
        evidence=(place,),
    )


def _removal(asked: CurationOperation, place: LearntFrom, active: Mapping[str, Bullet]) -> Delta | None:
    bullet = active.get(asked.id)
    if asked.type != "REMOVE" or bullet is None:
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


def _operations(chunks: Sequence[Chunk]) -> Iterator[tuple[CurationOperation, LearntFrom]]:
    """What was asked for, each with the end of the run that it is drawn from."""
    tops = top_runs(chunks)
    ends = {
        chunk.run: LearntFrom(session_id=chunk.session, run_id=chunk.run, seq=chunk.seq)
        for chunk in chunks
        if isinstance(chunk.event, RunFinished) and chunk.parent is None
    }
    for chunk in chunks:
        if isinstance(chunk.event, Reflected) and (place := ends.get(tops[chunk.run])) is not None:
            yield from ((each, place) for each in chunk.event.operations)


def _proposed(asked: CurationOperation, place: LearntFrom) -> Proposal:
    content = " ".join(asked.content.split())
    section = section_of(asked.section)
    return Proposal(
        section=section if section in SECTIONS else USUAL,
        content=content,
        why="insight",
        evidence=(place,),
        keywords=code_spans(content),
        origin="model",
        about=asked.id if asked.type == "UPDATE" else "",
    )
