"""State machine of one batch that derives lessons for the drafting agents from evaluations (R1.67, X.12)."""

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
from daiku.team.rules.drafting.moves import find_document
from daiku.team.rules.drafting.progress import APPLY
from daiku.team.rules.drafting.rubric import BEST
from daiku.team.rules.record import list_answered_calls
from daiku.texts.text import as_text, text

MOST_LESSONS = 12
LATEST = 200
"""Maximum number of evaluations that are read, the latest ones."""
MAX_ADVICE = 12
"""Maximum pieces of advice per criterion in the prompt."""
_ITEM = re.compile(r"^[-*+][ \t]+(\S.*)$", re.MULTILINE)


def format_evidence(evaluations: Sequence[KeptEvaluation]) -> tuple[str, ...]:
    """Format how often and how well each criterion was met, with the advice, the worst first."""
    scores: dict[str, list[int]] = defaultdict(list)
    advice: dict[str, dict[str, None]] = defaultdict(dict)
    for stored in evaluations[-LATEST:]:
        for score in stored.evaluation.scores:
            scores[score.criterion].append(score.score)
            if score.score < BEST and score.advice.strip():
                advice[score.criterion][" ".join(score.advice.split())] = None
    worst = sorted(advice, key=lambda name: (sum(scores[name]) / len(scores[name]), name))
    return tuple(
        "\n".join(
            [
                f"{name}: {sum(scores[name]) / len(scores[name]):.1f} of {BEST} on average in {len(scores[name])} texts",
                *(f"- {words}" for words in list(advice[name])[-MAX_ADVICE:]),
            ]
        )
        for name in worst
    )


def parse_lessons(content: str) -> tuple[str, ...]:
    """Parse the lessons of a file: its list items."""
    return tuple(_ITEM.findall(content))


def format_lessons(lessons: Sequence[str]) -> str:
    """Render the file with `lessons`."""
    lines = "".join(f"- {' '.join(lesson.split())}\n" for lesson in lessons)
    return f"# Lessons for texts of this project\n\n{lines}"


def next_move(state: State, _approvals: ApprovalMode, model_failure: Failure | None = None) -> Move:
    """Return the next call of the batch: the lessons, then the edit of their file."""
    document = find_document(state)
    if document is None or not document.passages:
        return EndRun(text("document.nothing_to_learn"))
    log = list_answered_calls(state)
    lessons_entry = next((t for t in log if t.agent == "lessons"), None)
    if lessons_entry is None:
        if model_failure is not None:
            return model_failure
        call = ToolCall(tool="agent/handoff", args={"agent": "lessons", "request": state.request.prompt})
        return MakeCall(call, text("document.learning", count=len(document.passages)))
    handover = lessons_entry.handoff.handover if lessons_entry.handoff is not None else None
    if not isinstance(handover, PatchMade):
        error = lessons_entry.handoff.error if lessons_entry.handoff is not None else None
        return error or Failure(kind="format", message=as_text(lessons_entry.text))
    if not handover.patch.change_map:
        return EndRun(text("document.nothing_to_learn"))
    apply_entry = next((t for t in log if t.call.tool == APPLY), None)
    if apply_entry is None and state.request.mode == "act":
        changes = [
            c.model_dump(mode="json", by_alias=True)
            for c in change_map(document.text, handover.patch.new_text)
        ]
        return MakeCall(ToolCall(tool=APPLY, args={"path": document.path, "changes": [*changes]}))
    if apply_entry is not None and apply_entry.ok:
        return EndRun(
            text("document.learnt", path=document.path, count=len(parse_lessons(handover.patch.new_text)))
        )
    reason = as_text(apply_entry.text) if apply_entry is not None else text("document.only_read")
    return EndRun(text("document.not_applied", why=reason))


def build_brief(state: State, _agent: str, request: str) -> Brief:
    """Build the stage's brief: the current file, and the evaluations."""
    return Brief(request=request, document=find_document(state))
