"""The sessions of the simulated world are what a real run records: the same steps, taken by a real run, teach the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from daiku.app import AppParts, build
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalDecision,
    ApprovalGiven,
    Edit,
    MessageEvent,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Lesson
from daiku.playbook.rules.outcome import judge_runs
from daiku.playbook.rules.reflect import reflect
from daiku.run.request import RunRequest
from daiku.settings.config import Config, PlaybookSettings
from daiku.testing import FakeLLM
from daiku.workspace.disk import DiskWorkspace
from tests.playbook.told import learn
from tests.playbook.world.actor import Actor
from tests.playbook.world.attempts import Step, Task
from tests.playbook.world.drawn import Convention, Kind, drawn
from tests.playbook.world.record import recorded
from tests.playbook.world.repository import Repository
from tests.runs.playing import Watch

WORLD = drawn(1000, 60)
LESSON = "env-00001"


def _shape(chunks: list[Chunk] | tuple[Chunk, ...]) -> list[tuple[object, ...]]:
    """What learning looks at, without ids and times."""
    found: list[tuple[object, ...]] = []
    for event in (chunk.event for chunk in chunks):
        match event:
            case RunStarted():
                found.append(("started", event.prompt, event.lessons))
            case MessageEvent(role="assistant"):
                found.append(("said", str(event.text), [(each.tool, each.args) for each in event.calls]))
            case ToolCallEvent():
                found.append(("called", event.tool, event.args))
            case ApprovalAsked():
                found.append(("asked", event.kind, event.args, str(event.preview)))
            case ApprovalGiven():
                found.append(("given", event.decision, event.feedback))
            case Edit():
                found.append(("edit", event.files, event.diff))
            case ToolResponse(tool="shell/run"):
                data = event.data or {}
                found.append(("ended", event.ok, event.outcome, data.get("exitCode"), data.get("output")))
            case ToolResponse():
                found.append(("answered", event.ok, event.outcome))
            case Review():
                found.append(("reviewed", event.decision, event.path, event.hunks, event.lines))
            case RunFinished():
                found.append(("finished", event.status, event.used_bullets))
            case _:
                pass
    return found


def _taught(chunks: list[Chunk] | tuple[Chunk, ...]) -> list[tuple[object, ...]]:
    """What is learnt from a session, and what it showed of lessons."""
    lessons = [(each.content, each.why, each.section, len(each.evidence)) for each in reflect(chunks)]
    showed = [
        (b.observation.bullet, b.observation.verdict, b.observation.why)
        for each in judge_runs(chunks)
        for b in each.bullets
    ]
    return [*lessons, *showed]


def _steps(folder: Path, kind: Kind, *, right_at: int) -> tuple[Task, Convention, tuple[Step, ...]]:
    """A task of this kind at which the actor, by itself, is right at this step; 0: never."""
    actor = Actor(Repository(folder, WORLD))
    for task, convention in WORLD.tasks:
        if convention.kind != kind:
            continue
        steps = actor.work(task, convention, convention.right, ())
        ended = 0 if steps[-1].code else len(steps)
        if ended == right_at and (ended or kind == "command" or len(steps[-1].said) > 20):
            return task, convention, steps
    raise AssertionError("no such task is drawn")


ADVICE = "Nothing of this is known for certain."


def _calls(task: Task, kind: Kind, steps: tuple[Step, ...], mark: str) -> list[list[object]]:
    """The steps as replies of a model; the first one names the lesson."""
    found: list[list[object]] = []
    for step in steps:
        args: JsonObject = {"command": step.action}
        if kind != "command":
            args = {"path": step.action, "content": f"{task.prompt}\n"}
        tool = "shell/run" if kind == "command" else "files/write"
        found.append([f"I follow [{mark}]." if step.advice else "I try this.", {"tool": tool, "args": args}])
    return found


async def _really(
    folder: Path, task: Task, kind: Kind, steps: tuple[Step, ...]
) -> tuple[list[Chunk], tuple[Lesson, ...]]:
    """The same steps by a run of ours, with the person's part in it."""
    end = "That is all that I tried." if steps[-1].code else "That passed."
    approvals = ApprovalSettings.model_validate(
        {"command": "allow", "edit": "ask" if kind == "folder" else "allow"}
    )
    app = build(
        Config(
            approvals=approvals, sandbox=SandboxSettings(mode="off"), playbook=PlaybookSettings(reflections=0)
        ),
        workspace=DiskWorkspace((folder,)),
        home=folder.parent / "home",
        parts=AppParts(model=FakeLLM(*_calls(task, kind, steps, LESSON), end, "I see."), plugins=False),  # type: ignore[arg-type]  # replies of words and calls
    )
    assert learn(app, ADVICE + " " + task.prompt) == LESSON
    watch = Watch()
    going = asyncio.create_task(app.runs.run(RunRequest(task.prompt), watch))
    if kind == "folder":
        asked = await watch.until("approval_asked")
        assert isinstance(asked.event, ApprovalAsked)
        decision: ApprovalDecision = "reject_once" if steps[-1].code else "allow_once"
        await app.runs.approve(asked.run, asked.event.approval_id, decision, steps[-1].said or None)
    result = await going
    if kind == "ending" and steps[-1].code:
        await app.reviews.decide(result.session_id, "reject", steps[-1].action, None)
        await app.runs.learner.settle()
        await app.runs.run(RunRequest(steps[-1].said, session=result.session_id), watch)
    assert app.stores is not None
    chunks = app.stores.journal.chunks(result.session_id)
    start = next(each.event for each in chunks if isinstance(each.event, RunStarted))
    await app.aclose()
    return chunks, start.lessons


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "right_at"),
    [
        ("command", 3),
        ("command", 2),
        ("command", 0),
        ("folder", 1),
        ("folder", 0),
        ("ending", 1),
        ("ending", 0),
    ],
)
async def test_a_session_of_the_world_is_what_a_real_run_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, right_at: int
) -> None:
    """Point 2 of issue 12: the journal from which is learnt is that of runs, not one that was made up for learning."""
    task, _, steps = _steps(tmp_path / "drawn", kind, right_at=right_at)
    steps = (steps[0]._replace(advice=f"[{LESSON}] {ADVICE}"), *steps[1:])
    project = tmp_path / "project"
    programs = Repository(project, WORLD).programs
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    real, lessons = await _really(project, task, kind, steps)
    assert [each.id for each in lessons] == [LESSON]
    ours = recorded("1", task, kind, lessons, steps)
    assert _shape(real) == _shape(ours)
    assert _taught(real) == _taught(ours)
