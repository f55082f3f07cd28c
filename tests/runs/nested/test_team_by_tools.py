"""A plan worked end to end by a model that answers by tools alone; one that stays in prose ends it with its words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import HandoffEnd, PlanEvent, ToolCallEvent
from daiku.domain.work.handovers import CommandsRun, EditsMade, Findings, PlanMade, ReportMade
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app

Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def call(agent: str, tool: str, when: str = "", **args: Any) -> Line:
    return {"agent": f"now you {agent}", "calls": [{"tool": tool, "args": args}], "when": when}


STEP = {"name": "Write a.txt", "acceptance": ["grep -q one a.txt"]}


async def test_a_plan_is_worked_by_tools_from_its_proposal_to_its_report(folder: Path) -> None:
    app = make_app(
        folder,
        call("plan", "plan/propose", name="Greet", summary="It greets.", steps=[STEP]),
        call("research", "report/findings", findings="Greetings are in a.txt."),
        call("write code", "files/write", when="Greetings are in a.txt.", path="a.txt", content="one\n"),
        {"agent": "now you write code", "text": "Wrote a.txt.", "when": "Made a.txt"},
        call("run commands", "shell/run", command="cat a.txt"),
        {"agent": "now you run commands", "text": "It says one."},
        {"agent": "now you report", "text": '{"text": "All is done.", "claims": []}'},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("greet me", agent="team", approvals="all"), watch)
    await app.aclose()
    assert result.status == "completed", result
    assert (folder / "project/a.txt").read_text() == "one\n"
    backs = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    kinds = [PlanMade, Findings, EditsMade, CommandsRun, ReportMade]
    assert [type(back.handover) for back in backs] == kinds, "what a stage hands over is a value"
    replies = [back.rounds for back in backs]
    assert replies == [1, 1, 2, 2, 1], "a proposal and a report end their runs"
    asked = [c.event.tool for c in watch.chunks if isinstance(c.event, ToolCallEvent)]
    assert "report/findings" not in asked
    plan = [c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent)][-1]
    assert [s.status for s in plan.steps] == ["completed"]


async def test_without_a_plan_the_team_ends_with_the_planners_words(folder: Path) -> None:
    why = "Nothing is to be planned: a.txt greets already."
    app = make_app(folder, *[{"agent": "now you plan", "text": why}] * 3)
    watch = Watch()
    result = await app.runs.run(RunRequest("greet me", agent="team", approvals="all"), watch)
    await app.aclose()
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.message == f"No plan could be made: {why}"
    [back] = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    assert (back.status, back.rounds) == ("completed", 1), "asked for the plan once more, in the same reply"
