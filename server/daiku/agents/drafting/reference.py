"""The reference agent: searches the workspace's references for what is near to the new text, without a model (R1.62)."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.drafting.tool_stage import tool_part
from daiku.domain.labels import Label
from daiku.domain.work.documents import ReferencesFound

TOOL = "document/references"

REFERENCE = Agent(
    "reference",
    Prompt("agents/coordinator"),
    tools=(TOOL,),
    part=tool_part(
        TOOL,
        ReferencesFound,
        label=Label("Reference", "参照担当"),
        description="finds passages of the workspace's references that are near to a text",
    ),
)
