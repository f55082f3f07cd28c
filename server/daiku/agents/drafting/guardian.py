"""The guard agent: compares the new text with the references; too near to one of them it is blocked (R1.63-R1.65)."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.drafting.tool_stage import tool_part
from daiku.domain.labels import Label
from daiku.domain.work.documents import SimilarityFound

TOOL = "document/similarity"

GUARD = Agent(
    "guard",
    Prompt("agents/coordinator"),
    tools=(TOOL,),
    part=tool_part(
        TOOL,
        SimilarityFound,
        label=Label("Guard", "類似度の確認担当"),
        description="compares a text with the workspace's references",
    ),
)
