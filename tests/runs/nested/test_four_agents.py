"""Seed 0 from one instruction to the report: Planner, Researcher, Coder, Runner and Reporter, each in the form
that the seed gives it, played by a model over HTTP; files are written, commands run and the web is asked for real.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    HandoffEnd,
    HandoffStart,
    PlanEvent,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.work.handovers import CommandsRun, EditsMade, Findings, PlanMade, ReportMade
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch
from tests.services.four_agents import GOAL, QUERIES, WRONG, play, role_of, text_of
from tests.services.models import MODEL, Said, Service, serving
from tests.services.web import LocalWeb, local_web

pytestmark = pytest.mark.slow  # whole runs of four agents whose commands really run

Json = dict[str, Any]


def app_with(folder: Path, service: Service, web: LocalWeb, protocol: str) -> App:
    (folder / "project").mkdir()
    base = f"http://127.0.0.1:{service.port}/v1"
    config = Config.model_validate(
        {
            "llm": {
                "model": f"openai/{MODEL}",
                "openai": {"api": "chat", "base_url": base, "api_key": "sk-test", "tool_protocol": protocol},
            },
            "research": {"engine": "searxng", "base_url": web.url("")},
            "sandbox": {"mode": "off"},
        }
    )
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


class Saying:
    """A person who says yes to what is asked all the same: once a page of the web was read, a command without a
    sandbox could send anything anywhere."""

    def __init__(self, app: App, watch: Watch) -> None:
        self._app, self._watch = app, watch
        self._saying = set[asyncio.Task[None]]()

    def __call__(self, chunk: Chunk) -> None:
        self._watch(chunk)
        if isinstance(chunk.event, ApprovalAsked):
            said = self._app.runs.approve(chunk.run, chunk.event.approval_id, "allow_once")
            self._saying.add(asyncio.ensure_future(said))


@pytest.mark.parametrize("protocol", ["native", "action_list", "command"])
async def test_one_instruction_goes_through_all_four_and_is_reported(tmp_path: Path, protocol: str) -> None:
    async with serving(play) as service, local_web() as web:
        web.links = [("https://roman.example.com/rules", "Subtractive notation")]
        app = app_with(tmp_path, service, web, protocol)
        watch = Watch()
        person = Saying(app, watch)
        result = await app.runs.run(RunRequest(GOAL, agent="team", approvals="all"), person)
        await app.aclose()
        searched = [path for path in web.paths if path.startswith("/search")]
    project = tmp_path / "project"
    assert result.status == "completed", result

    # Who worked, in which order, and what each handed to the next.
    events = [chunk.event for chunk in watch.chunks]
    order = [event.to for event in events if isinstance(event, HandoffStart)]
    assert order == ["planner", "researcher", "coder", "runner", "coder", "runner", "reporter"]
    handed = [event.handover for event in events if isinstance(event, HandoffEnd)]
    kinds = [PlanMade, Findings, EditsMade, CommandsRun, EditsMade, CommandsRun, ReportMade]
    assert [type(each) for each in handed] == kinds
    plan, found, edits, commands, *_, report = handed
    assert isinstance(plan, PlanMade)
    assert isinstance(found, Findings)
    assert isinstance(edits, EditsMade)
    assert isinstance(commands, CommandsRun)
    assert isinstance(report, ReportMade)
    assert (plan.plan.name, plan.plan.goal) == (
        "Roman",
        "Write a small library that adds Roman numerals, with a test.",
    )
    assert plan.plan.focus == "Python Roman numerals parsing"
    assert [s.depends_on for s in plan.plan.steps] == [(), (plan.plan.steps[0].step_id,)]
    assert found.queries == tuple(QUERIES["queries"])
    assert len(searched) == 2
    assert [f.path for f in edits.files] == ["roman.py", "test_roman.py"]
    assert [(c.command, c.exit_code) for c in commands.commands] == [
        ("python3 test_roman.py", 1),
        ("python3 test_roman.py", 0),
    ]
    assert "IX is 11" in commands.commands[0].output, "what it said on stderr is known"

    # What each prompt contained.
    told = {
        event.brief.step_id + chunk.agent: event.told
        for chunk in watch.chunks
        if isinstance(event := chunk.event, RunStarted) and event.brief is not None
    }
    step = plan.plan.steps[0].step_id
    assert told["planner"] == f"The user asked: {GOAL}"
    assert "- [ ] Step 2: Show that it works" in told["researcher"]
    assert told["researcher"].endswith("Keywords for Search Query: Python, Roman, numerals, parsing")
    code, run = told[f"{step}coder"], told[f"{step}runner"]
    sections = ["Project Step-by-step Plan:", "Context From User:", "Context From Knowledge Base:"]
    assert [code.index(each) for each in sections] == sorted(code.index(each) for each in sections)
    assert GOAL in code
    assert f"Query: {QUERIES['queries'][0]}\n\nResult:\n```\nSubtractive notation\n" in code
    assert "No context found." not in code
    assert "Full Code:\n~~~\nFile: `roman.py`:\n```py\n" in run
    assert "return sum(VALUES[letter] for letter in numeral)" in run
    assert "Coder: I parse from the right" in run
    assert f"User's last message: {GOAL}" in run

    # What is on disk, what was really run, in what folder.
    assert "for n, after in zip" in (project / "roman.py").read_text()
    assert (project / "test_roman.py").read_text().startswith('"""The subtractive')
    ran = [e.args["command"] for e in events if isinstance(e, ToolCallEvent) and e.tool == "shell/run"]
    assert ran.count("python3 test_roman.py") >= 2
    assert "python3 roman.py XIV IX" in ran
    last = [e for e in events if isinstance(e, ToolResponse) and e.tool == "shell/run"][-1]
    assert (last.ok, (last.data or {}).get("output")) == (True, "23\n")

    # The report: each claim with what it rests on, the steps done because their checks pass.
    claims = {str(claim.text): claim for claim in report.report.claims}
    assert [(p.subject, p.value) for p in claims["Its test passes."].proofs] == [
        ("python3 test_roman.py", "0")
    ]
    assert claims["It is easy to read."].proofs == ()
    assert "The library adds Roman numerals." in result.text
    assert "It is easy to read. (not checked)" in result.text
    final = [e.plan for e in events if isinstance(e, PlanEvent)][-1]
    assert [s.status for s in final.steps] == ["completed", "completed"]
    assert final.status == "completed"


def replies(service: Service, role: str) -> list[list[Json]]:
    """The requests in which `role` was asked."""
    asked = [r["body"]["messages"] for r in service.requests if r["path"].endswith("/chat/completions")]
    return [messages for messages in asked if role_of(messages) == role]


async def test_the_repair_is_asked_for_with_exit_code_and_stderr(tmp_path: Path) -> None:
    async with serving(play) as service, local_web() as web:
        app = app_with(tmp_path, service, web, "native")
        result = await app.runs.run(RunRequest(GOAL, agent="team", approvals="all"), Watch())
        await app.aclose()
    assert result.status == "completed"
    first, repair, *_ = replies(service, "runner")
    assert len(replies(service, "coder")) == 2, "one reply of the coder is a whole stage"
    assert len(replies(service, "planner")) == 1
    assert repair[: len(first)] == first, "the prefix stays, for the provider's cache"
    shown = "\n".join(str(m["content"]) for m in repair[len(first) :])
    assert "Exit code 1" in shown
    assert "AssertionError: IX is 11" in shown
    assert "2 of 2 repairs left" in shown


Play = Callable[[list[Json]], Said]


def lying() -> Play:
    """A model that says that all is well while the test still fails."""

    def answer(messages: list[Json]) -> Said:
        if role_of(messages) == "coder":
            return Said([WRONG if text_of(messages).count("not done yet") == 0 else "No change: it works."])
        if role_of(messages) == "runner":
            return Said([json.dumps({"commands": ["echo all tests pass"]})])
        if role_of(messages) == "reporter":
            return Said(
                [json.dumps({"text": "All tests pass.", "claims": [{"text": "All is done.", "refs": []}]})]
            )
        return play(messages)

    return answer


async def test_a_model_that_lies_leaves_the_step_open(tmp_path: Path) -> None:
    async with serving(lying()) as service, local_web() as web:
        app = app_with(tmp_path, service, web, "native")
        watch = Watch()
        result = await app.runs.run(RunRequest(GOAL, agent="team", approvals="all"), watch)
        await app.aclose()
    plans = [c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent)]
    assert not any(s.status == "completed" for plan in plans for s in plan.steps)
    assert plans[-1].status != "completed"
    assert result.text.startswith("Not finished:\n- step “")
