"""The document agent: leads a document through draft, style, reference, guard, and evaluation without a model."""

from __future__ import annotations

from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import build_brief, find_document, next_move, unfinished
from daiku.team.rules.drafting.progress import find_progress, merge_work
from daiku.texts.text import text


def build_document_patch(state: State) -> PatchMade | Unreadable:
    """Return the patch of the complete document, as the handover to the calling agent."""
    document = find_document(state)
    if document is None:
        return Unreadable(text("document.none"))
    return PatchMade(patch=merge_work(find_progress(state, document)).patch)


DOCUMENT = Agent(
    "document",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "document/*"),
    part=Part(
        label=Label("Document writer", "文書担当"),
        description="revises a document by draft, style, reference, guard and evaluation",
        delegate=False,
        repeats=True,
        stage=Stage(build_document_patch),
        machine=Machine(next_move, build_brief, unfinished),
    ),
)
