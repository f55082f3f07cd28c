"""The guard agent: compares the new text with the references; too near to one of them it is blocked (R1.63-R1.65)."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.drafting.tool_stage import answer_of, calls_once, never_unfinished, no_brief
from daiku.agents.part import Machine, Part, Stage
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.labels import Label
from daiku.domain.work.documents import SimilarityFound

COMPARE = "document/similarity"


def similarity_found(state: State) -> SimilarityFound | Unreadable:
    """How like the text is to the nearest reference."""
    return answer_of(state, COMPARE, SimilarityFound)


GUARD = Agent(
    "guard",
    Prompt("agents/coordinator"),
    tools=(COMPARE,),
    part=Part(
        label=Label("Guard", "類似度の確認担当"),
        description="compares a text with the workspace's references",
        delegate=False,
        stage=Stage(similarity_found),
        machine=Machine(calls_once(COMPARE), no_brief, never_unfinished),
    ),
)
