"""Lessons by rule, without a model: from commands that failed and passed, rejections with a reason, and corrections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.core.playbook.lessons.corrections import rule_words, standing_correction
from daiku.core.playbook.lessons.proposal import Proposal
from daiku.core.playbook.lessons.replaced import replaced_commands
from daiku.core.state.state import PERSON
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    MessageEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
)
from daiku.domain.playbook import LearntFrom

LINE_LENGTH = 160
"""Characters of a command line that a lesson repeats."""


def reflect(chunks: Sequence[Chunk]) -> tuple[Proposal, ...]:
    """What the runs in `chunks` taught, in the order in which it was learnt: nested runs and what came later, such as
    reviews and the person's next words, included. Texts are made from command lines and the person's words only."""
    found = [*replaced_commands(chunks), *_rejections(chunks), *_corrections(chunks)]
    found.sort(key=lambda each: each.evidence[-1].seq)
    return tuple(found)


def place(chunk: Chunk) -> LearntFrom:
    """The place of a chunk as evidence."""
    return LearntFrom(session_id=chunk.session, run_id=chunk.run, seq=chunk.seq)


def _rejections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """A person did not let something be done, or only a part of an edit, and said why."""
    asked: dict[str, Chunk] = {}
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=approval):
                asked[approval] = chunk
            case ApprovalGiven(approval_id=approval, unattended=False, feedback=str(reason)) as given:
                before = asked.get(approval)
                refused = given.decision in ("reject_once", "reject_always") or given.hunks is not None
                if before is not None and refused and (words := rule_words(reason)):
                    yield _rejected(before, chunk, words)
            case _:
                pass


def _rejected(asked: Chunk, given: Chunk, words: str) -> Proposal:
    event = asked.event
    command = event.args.get("command") if isinstance(event, ApprovalAsked) else None
    if isinstance(command, str) and (line := _line(command)):
        return Proposal(
            section="tool_usage",
            content=f"Do not run `{line}`: {words}",
            why="rejected",
            evidence=(place(asked), place(given)),
            keywords=(line,),
            failed=(line,),
        )
    return Proposal(
        section="review_feedback", content=words, why="rejected", evidence=(place(asked), place(given))
    )


def _line(command: str) -> str:
    """A command as a lesson can repeat it; empty where it cannot."""
    line = " ".join(command.split())
    plain = "\n" not in command.strip() and "`" not in line and line.isprintable()
    return line if plain and len(line) <= LINE_LENGTH else ""


def _corrections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """What the person said while a run worked, after they undid something, or first thing after a run, as a rule."""
    ended = undone = False
    for chunk in chunks:
        match chunk.event:
            case Review(decision="reject") | Restored():
                undone = True
            case RunFinished() if chunk.parent is None:
                ended = True
            case RunStarted(prompt=prompt) if chunk.parent is None:
                if ended or undone:
                    yield from _corrected(chunk, prompt, asked=not undone, undone=undone)
                ended = undone = False
            case MessageEvent(role="user", agent=agent, text=words) if agent == PERSON:
                yield from _corrected(chunk, str(words), asked=False, undone=undone)
                undone = False
            case _:
                pass


def _corrected(chunk: Chunk, said: str, *, asked: bool, undone: bool) -> Iterator[Proposal]:
    """`asked`: it is a request of its own, which is only a correction where it begins like one."""
    words = standing_correction(said, opening=asked, undone=undone)
    if words:
        yield Proposal(
            section="review_feedback" if undone else "project_conventions",
            content=words,
            why="rejected" if undone else "corrected",
            evidence=(place(chunk),),
        )
