"""The reference agent: searches the workspace's references for what is near to the new text, without a model (R1.62)."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.drafting.tool_stage import answer_of, calls_once, never_unfinished, no_brief
from daiku.agents.part import Machine, Part, Stage
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.labels import Label
from daiku.domain.work.documents import ReferencesFound

LOOK = "document/references"


def references_found(state: State) -> ReferencesFound | Unreadable:
    """The passages that the search found."""
    return answer_of(state, LOOK, ReferencesFound)


REFERENCE = Agent(
    "reference",
    Prompt("agents/coordinator"),
    tools=(LOOK,),
    part=Part(
        label=Label("Reference", "参照担当"),
        description="finds passages of the workspace's references that are near to a text",
        delegate=False,
        stage=Stage(references_found),
        machine=Machine(calls_once(LOOK), no_brief, never_unfinished),
    ),
)
