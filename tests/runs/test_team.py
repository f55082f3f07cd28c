"""The team works a plan: planner, researcher, coder, runner, checks, repair, re-planning, report."""

from __future__ import annotations

import json
import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.core.team import GO_ON, STOP
from daiku.domain.events import (
    ApprovalAsked,
    Edited,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    PlanChanged,
    RunFinished,
    ToolCalled,
)
from daiku.domain.plans import Plan
from daiku.domain.runs import ApprovalMode, RunResult
from daiku.runs import RunRequest
from tests.runs.playing import Watch, make_app, shell

Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def write(path: str, content: str) -> Line:
    return {"tool": "files/write", "args": {"path": path, "content": content}}


def propose(*steps: Line, goal: str = "Greet") -> Line:
    return {"tool": "plan/propose", "args": {"goal": goal, "steps": list(steps)}}


def step(name: str, *checks: str, after: tuple[str, ...] = ()) -> Line:
    return {"name": name, "description": f"Do {name}", "acceptance": list(checks), "depends_on": list(after)}


PLANNER = "now you plan"
RESEARCHER = "now you research"
CODER = "now you write code"
RUNNER = "now you run commands"
REPORTER = "now you report"
AT_1, AT_2, AT_3 = (f"later one:\nStep {number}:" for number in (1, 2, 3))
AGAIN = "This step is not done yet"


def by(agent: str, **line: Any) -> Line:
    return {"agent": agent, **line}


def planned(*steps: Line, **line: Any) -> tuple[Line, Line]:
    """The planner's two replies: the plan, then its words."""
    return by(PLANNER, calls=[propose(*steps)], **line), by(PLANNER, text="That is the plan.")


NOTHING_TO_LOOK_UP = by(RESEARCHER, text='{"queries": [], "ask_user": ""}')
RUNS_NOTHING = by(RUNNER, text='{"commands": []}')


def reported(text: str = "All is done.") -> Line:
    return by(REPORTER, text=json.dumps({"text": text, "claims": []}))


async def work(
    app: App, text: str = "greet me", approvals: ApprovalMode = "all", watch: Watch | None = None
) -> tuple[RunResult, Watch]:
    watch = watch or Watch()
    result = await app.runs.run(RunRequest(text, agent="team", approvals=approvals), watch)
    return result, watch


def handed(watch: Watch) -> list[str]:
    """Whom the team handed over to, in order."""
    return [c.event.to for c in watch.chunks if isinstance(c.event, HandoffStart)]


def last_plan(watch: Watch) -> Plan:
    return [c.event.plan for c in watch.chunks if isinstance(c.event, PlanChanged)][-1]


def commands(watch: Watch) -> list[str]:
    called = (c.event for c in watch.chunks if isinstance(c.event, ToolCalled))
    return [str(e.args["command"]) for e in called if e.tool == "shell/run"]


async def test_a_plan_of_two_steps_is_worked_checked_and_reported(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "grep -q one a.txt"), step("Write b", "grep -q two b.txt", after=("1",))),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
        by(CODER, text="Wrote a.txt.", when="Made a.txt"),
        by(CODER, calls=[write("b.txt", "two\n")], when=AT_2),
        by(CODER, text="Wrote b.txt.", when="Made b.txt"),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert result.status == "completed", result
    assert handed(watch) == ["planner", "researcher", "coder", "runner", "coder", "runner", "reporter"]
    assert [s.status for s in last_plan(watch).steps] == ["completed", "completed"]
    assert (folder / "project/a.txt").read_text() == "one\n"
    assert commands(watch) == ["grep -q one a.txt", "grep -q two b.txt", "grep -q one a.txt"]
    assert "its checks pass" in result.text
    await app.aclose()
