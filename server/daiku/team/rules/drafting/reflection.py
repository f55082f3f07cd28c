"""Lessons for the drafting agents, from what judgements of finished work say, in one batch (R1.67, X.12)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from daiku.domain.errors import Failure
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.documents import KeptEvaluation, PatchMade
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.changes.changemap import change_map
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.rules.drafting.moves import document_of
from daiku.team.rules.drafting.progress import APPLY
from daiku.team.rules.drafting.rubric import BEST
from daiku.team.rules.record import answered_calls
from daiku.texts.text import as_text, text

MOST_LESSONS = 12
LATEST = 200
"""Judgements that are looked at, the latest."""
NAMED = 12
"""Pieces of advice of one criterion that are told."""
_ITEM = re.compile(r"^[-*+][ \t]+(\S.*)$", re.MULTILINE)


def evidence_of(kept: Sequence[KeptEvaluation]) -> tuple[str, ...]:
    """Return how often and how well each criterion was met, with the advice, the worst first."""
    scores: dict[str, list[int]] = defaultdict(list)
    advice: dict[str, dict[str, None]] = defaultdict(dict)
    for each in kept[-LATEST:]:
        for score in each.evaluation.scores:
            scores[score.criterion].append(score.score)
            if score.score < BEST and score.advice.strip():
                advice[score.criterion][" ".join(score.advice.split())] = None
    worst = sorted(advice, key=lambda name: (sum(scores[name]) / len(scores[name]), name))
    return tuple(
        "\n".join(
            [
                f"{name}: {sum(scores[name]) / len(scores[name]):.1f} of {BEST} on average in {len(scores[name])} texts",
                *(f"- {words}" for words in list(advice[name])[-NAMED:]),
            ]
        )
        for name in worst
    )


def lessons_in(written: str) -> tuple[str, ...]:
    """The lessons of a file: its list items."""
    return tuple(_ITEM.findall(written))


def lessons_text(lessons: Sequence[str]) -> str:
    """The file that holds `lessons`."""
    lines = "".join(f"- {' '.join(lesson.split())}\n" for lesson in lessons)
    return f"# Lessons for texts of this project\n\n{lines}"


def next_move(state: State, _approvals: ApprovalMode, refused: Failure | None = None) -> Move:
    """The next call of the batch: the lessons, then the edit of their file."""
    document = document_of(state)
    if document is None or not document.passages:
        return EndRun(text("document.nothing_to_learn"))
    log = answered_calls(state)
    learnt = next((t for t in log if t.agent == "lessons"), None)
    if learnt is None:
        if refused is not None:
            return refused
        call = ToolCall(tool="agent/handoff", args={"agent": "lessons", "request": state.request.prompt})
        return MakeCall(call, text("document.learning", count=len(document.passages)))
    made = learnt.back.handover if learnt.back is not None else None
    if not isinstance(made, PatchMade):
        error = learnt.back.error if learnt.back is not None else None
        return error or Failure(kind="format", message=as_text(learnt.text))
    if not made.patch.change_map:
        return EndRun(text("document.nothing_to_learn"))
    applied = next((t for t in log if t.call.tool == APPLY), None)
    if applied is None and state.request.mode == "act":
        changes = [
            c.model_dump(mode="json", by_alias=True) for c in change_map(document.text, made.patch.new_text)
        ]
        return MakeCall(ToolCall(tool=APPLY, args={"path": document.path, "changes": [*changes]}))
    if applied is not None and applied.ok:
        return EndRun(text("document.learnt", path=document.path, count=len(lessons_in(made.patch.new_text))))
    why = as_text(applied.text) if applied is not None else text("document.only_read")
    return EndRun(text("document.not_applied", why=why))


def brief_of(state: State, _agent: str, request: str) -> Brief:
    """What the stage is given: the file as it stands, and what judgements say."""
    return Brief(request=request, document=document_of(state))
