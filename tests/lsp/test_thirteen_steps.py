"""Seed 4's example from its first line to its last: a goal, a plan, a yes, tasks, work, a report, a question.

The model is a service on loopback, asked over HTTP; files are written and commands run for real.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import connected
from tests.lsp.pair import Client
from tests.services.models import MODEL, Service, serving
from tests.services.thirteen_steps import (
    CHECK,
    DONE,
    GOAL,
    INSTALL,
    PACKAGE,
    PAGE,
    PROPOSAL,
    REPORT,
    YES,
    Form,
    action_list,
    model,
    native,
)

Json = dict[str, Any]


class Person:
    """Answers each approval once, and remembers what was asked."""

    def __init__(self, client: Client, token: str) -> None:
        self.client = client
        self.token = token
        self.asked: list[Json] = []

    async def say(self, text: str, session: str | None) -> Json:
        params = {"text": text, "partialResultToken": self.token, "sessionId": session}
        waiting = self.client.start("daiku/chat", params)
        answering = asyncio.create_task(self._answer())
        try:
            async with asyncio.timeout(30):
                return await waiting
        finally:
            answering.cancel()

    async def _answer(self) -> None:
        while True:
            open_ones = await self.client.until(self._open)
            self.asked.append(open_ones[0]["data"])
            await self.client.request(
                "daiku/approve",
                {
                    "runId": open_ones[0]["run"],
                    "approvalId": open_ones[0]["data"]["approvalId"],
                    "decision": "allow_once",
                },
            )

    def _open(self) -> list[Json]:
        known = {each["approvalId"] for each in self.asked}
        chunks = self.client.chunks(self.token)
        return [c for c in chunks if c["type"] == "approval_asked" and c["data"]["approvalId"] not in known]


def of_coordinator(service: Service) -> list[list[Json]]:
    """The messages of each request to the coordinator."""
    asked = [r["body"]["messages"] for r in service.requests if r["path"].endswith("/chat/completions")]
    return [messages for messages in asked if "You work inside" in str(messages[0]["content"])]


@pytest.mark.parametrize("form", [native, action_list])
async def test_from_the_goal_to_the_next_question(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    async with serving(model(form)) as service:
        for name, value in service.environment("openai-chat").items():
            monkeypatch.setenv(name, value)
        protocol = "native" if form is native else "action_list"
        settings = {
            "llm": {"model": f"openai/{MODEL}", "openai": {"api": "chat", "tool_protocol": protocol}},
            "sandbox": {"mode": "off"},
        }
        async with connected(workspace, settings=settings) as server:
            client = server.client
            person = Person(client, "t")

            # 1–5: the goal, the plan, the question.
            first = await person.say("ゲームを実装して", None)
            assert (first["status"], first["text"]) == ("completed", PROPOSAL)
            assert person.asked == [], "planning changes nothing and needs no approval"
            plan = [c["data"]["plan"] for c in client.chunks("t") if c["type"] == "plan"][-1]
            assert (plan["goal"], plan["status"]) == (GOAL, "draft")
            assert [s["name"] for s in plan["steps"]] == ["環境構築", "コア実装", "テスト"]
            assert list(workspace.iterdir()) == []

            # 6–13: yes; the tasks of step 1, the work, the report, the next question.
            second = await person.say(YES, first["sessionId"])
            assert (second["status"], second["text"]) == ("completed", DONE)
            chunks = client.chunks("t")

    assert [(a["kind"], a["tool"]) for a in person.asked] == [
        ("plan", "plan/approve"),
        ("edit", "files/write"),
        ("edit", "files/write"),
        ("command", "shell/run"),
        ("command", "shell/run"),
    ]
    assert "環境構築" in person.asked[0]["preview"]
    assert INSTALL in person.asked[3]["preview"]

    plan = [c["data"]["plan"] for c in chunks if c["type"] == "plan"][-1]
    assert [s["status"] for s in plan["steps"]] == ["completed", "pending", "pending"]
    assert [(t["operation"], t["status"]) for t in plan["steps"][0]["taskList"]] == [
        ("files/write", "completed"),
        ("files/write", "completed"),
        ("shell/run", "completed"),
    ]
    assert (workspace / "package.json").read_text() == PACKAGE
    assert (workspace / "index.html").read_text("utf-8") == PAGE
    assert (workspace / "node_modules/engine/package.json").read_text() == PACKAGE
    ran = [c["data"] for c in chunks if c["type"] == "tool_response" and c["data"]["tool"] == "shell/run"]
    assert [r["data"]["exitCode"] for r in ran] == [0, 0]
    called = [
        c["data"]["args"] for c in chunks if c["type"] == "tool_call" and c["data"]["tool"] == "shell/run"
    ]
    assert [c["command"] for c in called] == [INSTALL, CHECK], "the step's check was really run"

    told = next(
        c["data"] for c in chunks if c["type"] == "tool_response" and c["data"]["tool"] == "task_loop/run"
    )
    assert told["ok"]
    assert json.loads(told["result"].partition("\n\n")[0]) == REPORT
    assert "".join(
        c["data"]["text"] for c in chunks if c["type"] == "delta" and not c.get("parent")
    ).endswith(DONE)

    requests = of_coordinator(service)
    assert len(requests) == 5
    assert "0 of 3 steps completed" in str(requests[2][-1]["content"]), "progress stands beside the request"
    assert YES in str(requests[2][-1]["content"])
    assert "1 of 3 steps completed" in str(requests[4][-1]["content"])
    for shorter, longer in itertools.pairwise(requests):
        assert longer[: len(shorter)] == shorter, "a provider may keep the whole prefix"
