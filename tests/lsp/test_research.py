"""`daiku/research` over the wire: queries, results of a real engine, the plan it is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku import api
from tests.lsp.conftest import connected
from tests.services.web import local_web

Script = Callable[..., str]
FORM = {"text": json.dumps({"queries": ["what", "why"], "ask_user": "Which?"})}


def settings(engine: str) -> dict[str, Any]:
    return {"llm": {"provider": "scripted"}, "research": {"engine": "searxng", "base_url": engine}}


async def test_research_answers_with_queries_results_and_question(workspace: Path, script: Script) -> None:
    async with local_web() as web, connected(workspace, settings=settings(web.url(""))) as server:
        web.links = [("https://a.example.com/one", "First")]
        result = await server.client.request(
            "daiku/research",
            {"question": "How?", "model": script(FORM), "approvals": "all", "partialResultToken": "t"},
        )
        api.ResearchResult.model_validate(result)
        assert (result["status"], result["queries"], result["askUser"]) == (
            "completed",
            ["what", "why"],
            "Which?",
        )
        assert result["results"] == [
            {"query": "what", "url": "https://a.example.com/one", "title": "First", "text": "About First"}
        ]
        chunks = server.client.chunks("t")
        assert {c["agent"] for c in chunks} == {"researcher"}
        assert chunks[0]["data"]["mode"] == "ask"
        assert [c["data"]["tool"] for c in chunks if c["type"] == "tool_call"] == ["web/research"]


async def test_research_without_a_web_answers_with_its_queries(workspace: Path, script: Script) -> None:
    async with connected(workspace, settings=settings("http://127.0.0.1:9")) as server:
        result = await server.client.request(
            "daiku/research",
            {"question": "How?", "model": script(FORM), "approvals": "all", "partialResultToken": "t"},
        )
        assert (result["status"], result["queries"], result["results"]) == ("completed", ["what", "why"], [])
        assert any("searxng" in c["data"]["text"] for c in server.client.chunks("t") if c["type"] == "notice")


async def test_research_for_a_plan_goes_on_in_its_conversation(workspace: Path, script: Script) -> None:
    steps = [{"name": "Write it"}]
    proposal = {"calls": [{"tool": "plan/propose", "args": {"goal": "JWT login", "steps": steps}}]}
    lines = (
        proposal,
        {"text": "Planned."},
        {"text": FORM["text"], "when": "JWT, login"},
        {"text": "no keywords"},
    )
    model = script(*lines)
    async with connected(workspace, settings=settings("http://127.0.0.1:9")) as server:
        ask = server.client.request
        planned = await ask("daiku/plan", {"goal": "login", "model": model, "approvals": "all"})
        result = await ask(
            "daiku/research", {"planId": planned["plan"]["planId"], "model": model, "approvals": "all"}
        )
        assert result["sessionId"] == planned["sessionId"]
        assert result["queries"] == ["what", "why"]


async def test_research_of_nothing_is_refused(workspace: Path) -> None:
    async with connected(workspace) as server:
        assert (await server.client.refused("daiku/research", {})).code == -32602
        assert (await server.client.refused("daiku/research", {"planId": "plan_00000000"})).code == -32803


async def test_the_command_asks_the_researcher(workspace: Path, script: Script) -> None:
    async with connected(workspace, settings=settings("http://127.0.0.1:9")) as server:
        params = {
            "command": "daiku.research",
            "arguments": [{"text": "How?", "model": script({"text": '{"queries": [], "ask_user": ""}'})}],
        }
        result = await server.client.request("workspace/executeCommand", params)
        assert result["text"] == "Nothing needs to be looked up."
