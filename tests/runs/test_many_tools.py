"""MCP servers with many tools: twenty are sent, of forty only where to find them; consent is asked for as ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.config import MCPServerSettings
from daiku.domain.events import ApprovalAsked, ToolCallEvent, ToolResponse
from daiku.models.tokens import estimate
from daiku.run.request import RunRequest
from daiku.settings import load
from daiku.workspace.disk import DiskWorkspace
from tests.runs.test_mcp import Person
from tests.services.models import Said, serving
from tests.tools.mcp.play import wild

pytestmark = pytest.mark.slow  # real MCP servers
MOST_MORE = 1000
"""Tokens that forty more tools may add to what is sent with every request."""
FIND = Said(calls=[("tools__find", {"query": "archive a sprint"})])
CALL = Said(calls=[("tools__call", {"tool": "wild__archive_sprint", "args": {"filter": "done"}})])
DONE = Said(["Done."])


def many(count: int) -> MCPServerSettings:
    return wild("many", Path(str(count)))


async def play(
    folder: Path, *servers: MCPServerSettings, script: tuple[Said, ...] = (DONE,)
) -> tuple[dict[str, Any], Person]:
    """The first request of a run as a service gets it, and who watched the run."""
    (folder / "project").mkdir(exist_ok=True)
    async with serving(script) as service:
        environ = {**service.environment("openai-chat"), "DAIKU_SANDBOX__MODE": "off"}
        found = load(workspace=folder / "project", trusted=True, environ=environ).config
        config = found.model_copy(update={"mcp_servers": servers})
        workspace = DiskWorkspace((folder / "project",))
        app = build(config, workspace=workspace, home=folder / "home", trusted=True)
        person = Person(app)
        result = await app.runs.run(RunRequest("go"), person)
        await app.aclose()
    assert result.status == "completed", result
    return next(r["body"] for r in service.requests if "messages" in r["body"]), person


def prefix(body: dict[str, Any]) -> int:
    """Tokens of what every request begins with."""
    return estimate(json.dumps([body["messages"][0], body["tools"]], ensure_ascii=False))


def names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


async def test_forty_tools_of_a_server_add_at_most_a_thousand_tokens(tmp_path: Path) -> None:
    without, _ = await play(tmp_path)
    with_forty, _ = await play(tmp_path, many(40))
    assert names(with_forty) == names(without)
    more = prefix(with_forty) - prefix(without)
    assert 0 < more <= MOST_MORE


async def test_one_of_forty_is_found_and_called_after_the_person_was_asked(tmp_path: Path) -> None:
    _, person = await play(tmp_path, many(40), script=(FIND, CALL, DONE))
    assert [(a.tool, a.kind) for a in person.of(ApprovalAsked)] == [
        ("wild/*", "mcp"),
        ("wild/archive_sprint", "mcp"),
    ]
    assert [c.tool for c in person.of(ToolCallEvent)] == ["tools/find", "wild/archive_sprint"]
    found, done = person.of(ToolResponse)
    assert "wild__archive_sprint: A tool of the MCP server 'wild'" in found.result
    assert "filter" in found.result
    assert (done.ok, done.untrusted, done.result.startswith("archive_sprint from ")) == (True, True, True)


async def test_twenty_tools_of_a_server_are_sent(tmp_path: Path) -> None:
    body, person = await play(
        tmp_path, many(20), script=(Said(calls=[("wild__list_ticket", {"filter": "open"})]), DONE)
    )
    assert len([name for name in names(body) if name.startswith("wild__")]) == 20
    assert [(r.tool, r.ok) for r in person.of(ToolResponse)] == [("wild/list_ticket", True)]
