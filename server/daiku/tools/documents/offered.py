"""The tools of the drafting agents together; the desk that they share is known without them."""

from __future__ import annotations

from daiku.tools.documents.apply import apply_tool
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.documents.evaluate import evaluate_tool
from daiku.tools.documents.near import near_tools
from daiku.tools.tool import Tool


def document_tools(desk: DocumentDesk) -> tuple[Tool, ...]:
    """The tools of the drafting agents; no other agent is offered them."""
    return (*near_tools(desk), evaluate_tool(desk), apply_tool(desk))
