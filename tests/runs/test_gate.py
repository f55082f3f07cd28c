"""A step is completed only when its checks are shown, also for a model that says that all is done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, InputAsked, Notice, PlanEvent, ToolResponse
from daiku.domain.runs import RunResult
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.team.rules.proof.gate import LEAVE, VOUCH
from tests.runs.playing import Watch, make_app, shell

Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def call(tool: str, **args: Any) -> Line:
    return {"tool": tool, "args": args}


def planned(*checks: str) -> tuple[Line, Line]:
    steps = [{"name": "Do it", "acceptance": list(checks)}]
    return ({"calls": [call("plan/propose", goal="G", steps=steps)]}, {"calls": [call("plan/approve")]})


def move(status: str) -> Line:
    return {"calls": [call("plan/update_step", step_id="1", status=status)]}


async def play(folder: Path, *lines: Line) -> tuple[RunResult, Watch]:
    app = make_app(folder, *lines)
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()
    return result, watch


def status(watch: Watch) -> str:
    return [c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent)][-1].steps[0].status


def refusals(watch: Watch) -> list[str]:
    said = (c.event for c in watch.chunks if isinstance(c.event, ToolResponse))
    return [e.result for e in said if e.tool == "plan/update_step" and not e.ok]


async def test_a_model_that_says_all_is_done_leaves_the_step_open_and_the_person_is_told(
    folder: Path,
) -> None:
    result, watch = await play(folder, *planned("pytest -q"), move("completed"), {"text": "All done!"})
    assert result.status == "completed"
    [why] = refusals(watch)
    assert "pytest -q" in why
    assert "shell__run" in why
    assert status(watch) == "pending"
    notices = [c.event.text for c in watch.chunks if isinstance(c.event, Notice)]
    assert "The plan “G” is not finished: 0 of 1 steps are done. Open: Do it." in notices


async def test_the_check_has_to_be_run_exactly_and_to_pass(folder: Path) -> None:
    _, watch = await play(
        folder,
        *planned("test -e made"),
        {"calls": [shell("test -e made || true")]},
        move("completed"),
        {"calls": [shell("test -e made")]},
        move("completed"),
        {"calls": [shell("touch made")]},
        {"calls": [shell("test  -e made")]},
        move("completed"),
        {"text": "Done."},
    )
    assert len(refusals(watch)) == 2
    assert "its last run ended with 1" in refusals(watch)[1]
    assert status(watch) == "completed"


async def test_after_an_edit_the_check_has_to_be_run_again(folder: Path) -> None:
    _, watch = await play(
        folder,
        *planned("ls"),
        {"calls": [shell("ls")]},
        {"calls": [call("files/write", path="a.txt", content="x")]},
        move("completed"),
        {"calls": [shell("ls")]},
        move("completed"),
        {"text": "Done."},
    )
    assert len(refusals(watch)) == 1
    assert status(watch) == "completed"


async def test_a_nested_runs_edit_counts_as_one(folder: Path) -> None:
    _, watch = await play(
        folder,
        {"calls": [call("files/write", path="a.txt", content="x")], "agent": "now you write code"},
        {"text": "Written.", "agent": "now you write code"},
        *planned("ls"),
        {"calls": [shell("ls")]},
        {"calls": [call("agent/handoff", agent="coder", request="write it")]},
        move("completed"),
        {"text": "Done."},
    )
    assert len(refusals(watch)) == 1
    assert status(watch) == "pending"


async def test_a_draft_is_not_worked(folder: Path) -> None:
    _, watch = await play(folder, planned("ls")[0], move("in_progress"), {"text": "Well."})
    assert "draft" in refusals(watch)[0]


@pytest.mark.parametrize("locale", ["en", "ja"])
@pytest.mark.parametrize(("word", "becomes"), [(VOUCH, "completed"), (LEAVE, "pending")])
async def test_diagnostics_without_an_editor_are_for_the_person_to_count(
    folder: Path, word: str, becomes: str, locale: str
) -> None:
    app = make_app(folder, *planned("diagnostics"), move("completed"), {"text": "Done."}, locale=locale)
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    asked = (await watch.until("input_asked")).event
    assert isinstance(asked, InputAsked)
    assert locale != "en" or "no editor is connected" in asked.question
    offered = asked.choices[(VOUCH, LEAVE).index(word)]  # as the person reads it
    await app.runs.answer(watch.chunks[0].run, asked.input_id, offered)
    result = await task
    assert result.status == "completed"
    assert status(watch) == becomes
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_where_nobody_is_there_such_a_check_is_refused_with_what_counts_instead(folder: Path) -> None:
    app = make_app(
        folder, planned("diagnostics")[0], {"text": "Planned."}, move("completed"), {"text": "Done."}
    )
    watch = Watch()
    first = await app.runs.run(RunRequest("go", approvals="all"), watch)
    plan = next(c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent))
    await app.runs.change_plan(plan.model_copy(update={"status": "approved"}))
    await app.runs.run(RunRequest("go on", session=first.session_id, approvals="none"), watch)
    [why] = refusals(watch)
    assert "no editor is connected" in why
    assert "give the step a command" in why
    await app.aclose()


def proposed(*steps: Line) -> Line:
    return {"calls": [call("plan/propose", goal="G", steps=list(steps))]}


@pytest.mark.parametrize("status", ["in_progress", "completed"])
async def test_a_step_waits_for_those_before_it(folder: Path, status: str) -> None:
    steps = ({"name": "one"}, {"name": "two", "depends_on": ["1"]}, {"name": "three", "depends_on": ["2"]})
    third = {"calls": [call("plan/update_step", step_id="3", status=status)]}
    _, watch = await play(
        folder, proposed(*steps), {"calls": [call("plan/approve")]}, third, {"text": "Well."}
    )
    assert refusals(watch) == ["Step “three” has to wait for: two. Complete those first."]


async def test_a_step_without_checks_that_is_completed_says_that_nothing_proves_it(folder: Path) -> None:
    _, watch = await play(
        folder,
        proposed({"name": "one"}),
        {"calls": [call("plan/approve")]},
        move("completed"),
        {"text": "Well."},
    )
    told = [c.event.result for c in watch.chunks if isinstance(c.event, ToolResponse)][-1]
    assert "nothing proves it" in told
    assert status(watch) == "completed"


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("true", "proves nothing"),
        ("pytest -q || true", "proves nothing"),
        ("all tests pass", "no command: there is no program 'all'"),
        ("tail -f log", "does not end by itself"),
    ],
)
async def test_a_check_that_proves_nothing_is_asked_back(folder: Path, check: str, said: str) -> None:
    _, watch = await play(
        folder, proposed({"name": "one", "acceptance": [check]}), proposed({"name": "one"}), {"text": "Well."}
    )
    first, second = [c.event for c in watch.chunks if isinstance(c.event, ToolResponse)]
    assert (first.ok, second.ok) == (False, True)
    assert said in first.result


async def test_a_program_that_a_step_has_to_bring_first_is_told(folder: Path) -> None:
    step = {"name": "one", "acceptance": ["(10 min) no-such-tool --version"]}
    _, watch = await play(folder, proposed(step), {"text": "Well."})
    [told] = [c.event for c in watch.chunks if isinstance(c.event, ToolResponse)]
    assert told.ok
    assert "There is no program 'no-such-tool' here" in told.result
    assert "- Check (10 min): `no-such-tool --version`" in told.result


def write(path: str) -> Line:
    return {"calls": [call("files/write", path=path, content="x = 1\n")]}


def step(number: str, status: str) -> Line:
    return {"calls": [call("plan/update_step", step_id=number, status=status)]}


DENIED = ".git/config"
REFUSED_EDITS: dict[str, tuple[tuple[Line, ...], tuple[str, ...]]] = {
    "refused": (
        (step("1", "in_progress"), write(DENIED), step("1", "completed")),
        ("in_progress", "pending"),
    ),
    "never begun": ((write(DENIED), step("1", "completed")), ("pending", "pending")),
    "begun twice": (
        (step("1", "in_progress"), write(DENIED), step("1", "in_progress"), step("1", "completed")),
        ("in_progress", "pending"),
    ),
    "another begun": (
        (step("1", "in_progress"), write(DENIED), step("2", "in_progress"), step("1", "completed")),
        ("in_progress", "in_progress"),
    ),
    "reopened": (
        (
            write(DENIED),
            step("1", "failed"),
            {"calls": [call("plan/update_step", step_id="1", status="completed", reopen=True)]},
        ),
        ("failed", "pending"),
    ),
    "another file": (
        (step("1", "in_progress"), write(DENIED), write("a.py"), step("1", "completed")),
        ("in_progress", "pending"),
    ),
    "in the step before": (
        (step("1", "in_progress"), write(DENIED), step("1", "failed"), step("2", "completed")),
        ("failed", "completed"),
    ),
    "in the step after": (
        (
            step("1", "in_progress"),
            write("a.py"),
            step("1", "completed"),
            write(DENIED),
            step("2", "completed"),
        ),
        ("completed", "pending"),
    ),
    "none": ((step("1", "in_progress"), write("a.py"), step("1", "completed")), ("completed", "pending")),
}


@pytest.mark.parametrize("by_user", [False, True], ids=["guard", "user"])
@pytest.mark.parametrize("name", REFUSED_EDITS)
async def test_a_step_whose_edit_was_refused_stays_open(folder: Path, name: str, by_user: bool) -> None:
    """A23.1"""
    lines, statuses = REFUSED_EDITS[name]
    if by_user and name == "another file":  # edited after the user's answer
        statuses = ("completed", "pending")
    first = proposed({"name": "one"}, {"name": "two"}), {"calls": [call("plan/approve")]}
    app = make_app(folder, *first, *lines, {"text": "All done!"})
    watch = Watch()
    tasks: list[asyncio.Future[None]] = []

    def reject(chunk: Chunk) -> None:
        watch(chunk)
        if isinstance(chunk.event, ApprovalAsked):
            tasks.append(
                asyncio.ensure_future(app.runs.approve(chunk.run, chunk.event.approval_id, "reject_once"))
            )

    async with asyncio.timeout(20):
        await app.runs.run(RunRequest("go", approvals="all", attended=by_user), reject)
    await app.aclose()
    plans = [c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent)]
    assert tuple(each.status for each in plans[-1].steps) == statuses
    assert all(f"the edit of `{DENIED}` was refused" in why for why in refusals(watch))
    assert bool(refusals(watch)) == (lines[-1]["calls"][0]["args"]["step_id"] != _last_completed(statuses))


def _last_completed(statuses: tuple[str, ...]) -> str:
    done = [str(n) for n, status in enumerate(statuses, 1) if status == "completed"]
    return done[-1] if done else ""
