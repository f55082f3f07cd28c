"""The agent that leads a document through draft, style, reference, guard and evaluation, without a model of its own."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.part import Machine, Part, Stage
from daiku.core.drafting.moves import brief_of, document_of, next_move, unfinished
from daiku.core.drafting.progress import merged_work, progress_of
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade
from daiku.texts.text import text


def document_made(state: State) -> PatchMade | Unreadable:
    """The patch of the whole document, for an agent that asked for it."""
    document = document_of(state)
    if document is None:
        return Unreadable(text("document.none"))
    return PatchMade(patch=merged_work(progress_of(state, document)).patch)


DOCUMENT = Agent(
    "document",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "document/*"),
    part=Part(
        label=Label("Document", "文書"),
        description="revises a document by draft, style, reference, guard and evaluation",
        delegate=False,
        repeats=True,
        stage=Stage(document_made),
        machine=Machine(next_move, brief_of, unfinished),
    ),
)
