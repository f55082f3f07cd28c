"""The agent that leads a document through draft, style, reference, guard and evaluation, without a model of its own."""

from __future__ import annotations

from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import brief_of, document_of, next_move, unfinished
from daiku.team.rules.drafting.progress import merged_work, progress_of
from daiku.texts.text import text


def document_made(state: State) -> PatchMade | Unreadable:
    """The patch of the whole document, for an agent that asked for it."""
    document = document_of(state)
    if document is None:
        return Unreadable(text("document.none"))
    return PatchMade(patch=merged_work(progress_of(state, document)).patch)


DOCUMENT = Agent(
    "document",
    Prompt("team/coordinator"),
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
