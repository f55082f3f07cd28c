"""The run service: approvals, steering, pausing, cancelling, forgetting nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.domain.errors import UsageError
from daiku.domain.events import ApprovalAsked, InputAsked, ToolResponse
from daiku.domain.runs import Mode, RunLimits, RunResult
from daiku.domain.tools import ToolCall
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app, shell

Play = Callable[..., App]


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Play]:
    """Builds an App over one project and home, with a script for the model."""
    (tmp_path / "project").mkdir()
    apps: list[App] = []

    def make(*lines: dict[str, Any], command: str = "ask") -> App:
        apps.append(make_app(tmp_path, *lines, command=command))
        return apps[-1]

    yield make
    for app in apps:
        await app.aclose()


async def test_an_approval_lets_the_call_run(play: Play, tmp_path: Path) -> None:
    app, watch = play({"calls": [shell("touch made")]}, {"text": "Done."}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    assert "touch made" in asked.preview
    assert not (tmp_path / "project/made").exists()
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "allow_once")
    result = await task
    assert (result.status, result.text) == ("completed", "Done.")
    assert (tmp_path / "project/made").exists()


async def test_a_rejection_reaches_the_model_with_the_persons_words(play: Play, tmp_path: Path) -> None:
    app, watch = play({"calls": [shell("touch made")]}, {"text": "I see.", "when": "not now"}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "reject_once", "not now")
    assert (await task).text == "I see."
    response = next(c.event for c in watch.chunks if isinstance(c.event, ToolResponse))
    assert not response.ok
    assert not (tmp_path / "project/made").exists()


async def test_always_is_remembered_for_the_workspace_and_can_be_taken_back(play: Play) -> None:
    lines = [{"calls": [shell("touch made")]}, {"text": "Done."}]
    app, watch = play(*lines, *lines, *lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    assert asked.remember
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "allow_always")
    session = (await task).session_id
    second = Watch()
    await app.runs.run(RunRequest("again", session=session), second)
    assert "approval_asked" not in second.types()
    workspace = str(app.workspace.roots[0])
    for key, _ in app.grants.all(workspace):
        app.grants.revoke(workspace, key)
    third = Watch()
    await app.runs.run(RunRequest("once more", session=session, approvals="none"), third)
    assert "approval_asked" in third.types()


async def test_with_nobody_there_what_needs_a_person_is_refused_at_once(play: Play, tmp_path: Path) -> None:
    app, watch = play({"calls": [shell("touch made")]}, {"text": "I could not."}), Watch()
    result = await app.runs.run(RunRequest("go", approvals="none"), watch)
    assert (result.status, [each.kind for each in result.reasons]) == (
        "completed_unverified",
        ["not_approved"],
    )
    assert not (tmp_path / "project/made").exists()
    assert watch.types().count("approval_given") == 1


async def test_cancelling_ends_the_run_and_its_command_at_once(play: Play, tmp_path: Path) -> None:
    app, watch = play({"calls": [shell("sleep 30; touch made")]}, command="allow"), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    async with asyncio.timeout(3):
        await app.runs.cancel(called.run)
        result = await task
    assert result.status == "cancelled"
    assert watch.types()[-3:] == ["tool_response", "agent_end", "run_finished"]
    with pytest.raises(UsageError):
        await app.runs.steer(called.run, "x")


async def test_who_hears_of_a_run_first_may_cancel_it_at_once(play: Play, tmp_path: Path) -> None:
    """In the very call that shows its start: nothing works for it yet."""
    app, watch = play({"calls": [shell("touch made")]}), Watch()

    def listen(chunk: Chunk) -> None:
        watch(chunk)
        if chunk.type == "run_started":
            assert app.runs.begin_cancel(chunk.run) is not None

    result = await app.runs.run(RunRequest("go", approvals="all"), listen)
    assert result.status == "cancelled"
    assert watch.types() == ["run_started", "agent_start", "agent_end", "run_finished"]
    assert app.journal.get_session(result.session_id).status == "cancelled"
    assert not (tmp_path / "project/made").exists()


async def test_a_cancelled_caller_leaves_a_finished_run(play: Play) -> None:
    app, watch = play({"calls": [shell("sleep 30")]}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    await watch.until("tool_call")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watch.types()[-1] == "run_finished"


async def test_what_is_said_meanwhile_is_read_at_the_next_turn(play: Play) -> None:
    app, watch = (
        play(
            {"calls": [shell("sleep 0.3")]}, {"text": "I heard you.", "when": "in Japanese"}, {"text": "deaf"}
        ),
        Watch(),
    )
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    run = (await watch.until("tool_call")).run
    await app.runs.steer(run, "answer in Japanese")
    assert (await task).text == "I heard you."


async def test_a_paused_run_waits_for_its_approval_over_a_restart(play: Play, tmp_path: Path) -> None:
    lines = ({"calls": [shell("touch made")]}, {"text": "Done."})
    app, watch = play(*lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    run = watch.chunks[0].run
    paused = await app.runs.pause(run)
    assert (paused.status, (await task).status) == ("paused", "paused")
    assert app.journal.get_session(paused.session_id).status == "paused"
    await app.aclose()

    again = play(*lines)
    await again.runs.approve(run, asked.approval_id, "allow_once")
    later = Watch()
    result = await again.runs.resume(run, later)
    assert (result.run_id, result.status) == (run, "completed")
    assert (tmp_path / "project/made").exists()
    assert [c.type for c in again.journal.chunks(paused.session_id)].count("approval_asked") == 1


async def test_a_run_of_another_process_is_neither_paused_nor_steered_from_here_and_that_is_said(
    play: Play,
) -> None:
    lines = ({"calls": [shell("touch made")]}, {"text": "Done."})
    app, other, watch = play(*lines), play(*lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    run = (await watch.until("approval_asked")).run
    for tried in (other.runs.pause(run), other.runs.steer(run, "x")):
        with pytest.raises(UsageError, match="under way in another window") as refused:
            await tried
        assert refused.value.failure.kind == "busy"
    assert (await app.runs.pause(run)).status == "paused"
    await task
    with pytest.raises(UsageError, match="is not under way"):
        await other.runs.pause(run)


async def test_an_open_approval_is_shown_again_on_resume(play: Play) -> None:
    lines = ({"calls": [shell("touch made")]}, {"text": "Done."})
    app, watch = play(*lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = await watch.until("approval_asked")
    await app.runs.pause(asked.run)
    await task
    later = Watch()
    resumed = asyncio.create_task(app.runs.resume(asked.run, later))
    again = await later.until("approval_asked")
    assert again.seq == asked.seq
    assert isinstance(again.event, ApprovalAsked)
    await app.runs.approve(asked.run, again.event.approval_id, "allow_once")
    assert (await resumed).status == "completed"


async def test_a_question_is_answered_by_the_person(play: Play) -> None:
    question = {"tool": "user/ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}}
    app, watch = play({"calls": [question]}, {"text": "Blue it is.", "when": "blue"}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("input_asked")).event
    assert isinstance(asked, InputAsked)
    assert (asked.question, asked.choices) == ("Which colour?", ("red", "blue"))
    await app.runs.answer(watch.chunks[0].run, asked.input_id, "blue")
    assert (await task).text == "Blue it is."


async def test_a_session_runs_one_thing_at_a_time(play: Play) -> None:
    app, watch = play({"calls": [shell("sleep 5")]}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    first = await watch.until("tool_call")
    with pytest.raises(UsageError) as busy:
        await app.runs.run(RunRequest("me too", session=first.session), Watch())
    assert busy.value.failure.kind == "busy"
    await app.runs.cancel(first.run)
    await task


@pytest.mark.slow
async def test_the_time_limit_stops_a_command_and_says_so(play: Play) -> None:
    app, watch = play({"calls": [shell("sleep 30")]}), Watch()
    result = await app.runs.run(RunRequest("go", approvals="all", limits=RunLimits(max_seconds=1)), watch)
    assert result.status == "limit"
    assert result.error is not None
    assert "time" in result.error.message


async def test_ask_and_plan_change_nothing(play: Play, tmp_path: Path) -> None:
    lines = ({"calls": [shell("touch made")]}, {"text": "I may not."})
    modes: tuple[Mode, ...] = ("ask", "plan")
    for mode in modes:
        app = play(*lines)
        result = await app.runs.run(RunRequest("go", mode=mode, approvals="all"), Watch())
        assert result.text == "I may not."
        assert list((tmp_path / "project").iterdir()) == []


async def test_wrong_names_are_told_before_anything_is_written(play: Play) -> None:
    app = play({"text": "x"})
    for request in (
        RunRequest("go", session="ses_nowhere"),
        RunRequest("go", agent="cook"),
        RunRequest("go", model="nowhere/x"),
    ):
        with pytest.raises(UsageError):
            await app.runs.run(request, Watch())
    assert app.journal.list_sessions() == []


async def test_a_failing_model_ends_the_run_as_failed_with_a_hint(play: Play) -> None:
    app = play({"error": {"kind": "auth", "message": "wrong key", "hint": "set another"}})
    result: RunResult = await app.runs.run(RunRequest("go"), Watch())
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.kind, result.error.hint) == ("auth", "set another")


async def test_given_calls_run_without_a_model_and_stop_at_the_first_that_fails(
    play: Play, tmp_path: Path
) -> None:
    app, watch = play({"error": {"kind": "auth"}}), Watch()
    commands = ("echo one", "echo two > two; exit 3", "touch three")
    calls = tuple(ToolCall(tool="shell/run", args={"command": c}) for c in commands)
    result = await app.runs.run(RunRequest("run them", agent="runner", calls=calls, approvals="all"), watch)
    assert result.status == "completed"
    assert "stopped" in result.text
    outcomes = [c.event.ok for c in watch.chunks if isinstance(c.event, ToolResponse)]
    assert outcomes == [True, False]
    assert sorted(p.name for p in (tmp_path / "project").iterdir()) == ["two"]
    second = await app.runs.run(
        RunRequest("again", session=result.session_id, calls=calls[:1], approvals="all"), Watch()
    )
    assert second.text == "All 1 done."


@pytest.mark.parametrize("room", [2, 3, 4, 5])
async def test_a_run_that_cannot_be_recorded_fails_and_says_why(tmp_path: Path, room: int) -> None:
    (tmp_path / "project").mkdir()
    app, watch = make_app(tmp_path, {"text": "y" * 200_000}), Watch()
    db = app.journal._db  # a full disk, without one
    pages = db.first("PRAGMA page_count")[0]
    db.write(f"PRAGMA max_page_count = {pages + room}")
    result = await app.runs.run(RunRequest("go"), watch)
    assert result.status == "failed"
    assert result.error is not None
    assert "cannot be recorded" in result.error.message
    await app.aclose()


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (("files/read", {"path": "missing.txt"}), "missing.txt"),
        (
            ("files/edit", {"path": "a.txt", "edits": [{"search": "never", "replace": "x"}]}),
            "The text to replace is not in the file",
        ),
    ],
)
async def test_the_end_for_failed_calls_names_what_failed(
    tmp_path: Path, call: tuple[str, dict[str, Any]], cause: str
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("one\n")
    tool, args = call
    app = make_app(tmp_path, *[{"calls": [{"tool": tool, "args": args}]}] * 6, {"text": "I could not."})
    limits = RunLimits(max_tool_errors=2, max_repeats=0)
    result = await app.runs.run(RunRequest("go", approvals="all", limits=limits), Watch())
    assert result.error is not None
    assert "Last error: " in result.error.message
    assert cause in result.error.message
    await app.aclose()
