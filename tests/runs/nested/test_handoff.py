"""Handing a request to another agent: nested runs with their own name, bounded in depth."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ApprovalAsked, HandoffEnd, ToolCallEvent, ToolResponse
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app, shell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def hand(agent: str, request: str) -> dict[str, Any]:
    return {"tool": "agent/handoff", "args": {"agent": agent, "request": request}}


async def test_another_agents_chunks_carry_its_name_and_the_parent(folder: Path) -> None:
    """R1.4, R1.32: a hand-off is a nested run, whose chunks are those of its agent."""
    app = make_app(
        folder,
        {"text": "I ask the runner.", "calls": [hand("runner", "say hi")], "when": "go"},
        {"calls": [shell("echo hi")], "when": "say hi"},
        {"text": "It said hi.", "when": "Exit code"},
        {"text": "Done: the runner said hi.", "when": "It said hi."},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert (result.status, result.text) == ("completed", "Done: the runner said hi.")
    nested = [c for c in watch.chunks if c.parent is not None]
    assert {c.agent for c in nested} == {"runner"}
    assert {c.parent for c in nested} == {result.run_id}
    assert [c.type for c in nested if c.type in ("run_started", "tool_call", "run_finished")] == [
        "run_started",
        "tool_call",
        "run_finished",
    ]
    assert [c.seq for c in watch.chunks] == list(range(1, len(watch.chunks) + 1))
    top = [c.type for c in watch.chunks if c.parent is None]
    assert (top[0], top[-1], top.count("run_finished")) == ("run_started", "run_finished", 1)
    back = next(c.event for c in watch.chunks if isinstance(c.event, HandoffEnd))
    assert (back.source, back.to, back.result) == ("coordinator", "runner", "It said hi.")
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_nested_run_asks_the_same_person(folder: Path) -> None:
    app = make_app(
        folder,
        {"calls": [hand("runner", "make it")], "when": "go"},
        {"calls": [shell("touch made")], "when": "make it"},
        {"text": "Made.", "when": "Exit code"},
        {"text": "All made.", "when": "Made."},
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "allow_once")
    assert (await task).text == "All made."
    assert (folder / "project/made").exists()
    await app.aclose()


async def test_the_fourth_nested_handoff_ends_the_top_run(folder: Path) -> None:
    """R1.31, R1.85; C1.4: three are allowed, the fourth ends everything above it."""
    again = ({"calls": [hand("coordinator", f"level {i}")]} for i in range(60))
    app = make_app(folder, *again)
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.kind, result.error.message) == (
        "handoff_depth",
        "At most 3 nested handoffs are allowed.",
    )
    runs = {c.run for c in watch.chunks}
    assert len(runs) == 4
    assert watch.types().count("usage") == 4, "no level asks its model once more"
    for run in runs:
        assert [c.type for c in watch.chunks if c.run == run].count("run_finished") == 1
    answered = {c.event.id for c in watch.chunks if isinstance(c.event, ToolResponse)}
    begun = {c.event.id for c in watch.chunks if isinstance(c.event, ToolCallEvent)}
    assert begun == answered, "no call is left without its answer"
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_explorers_and_side_by_side_work_count_as_levels_too(folder: Path) -> None:
    """R1.31: whatever starts a run below a run is one level deeper."""
    down = (
        {"calls": [hand("coordinator", f"level {i}")], "when": "go" if i == 0 else f"level {i - 1}"}
        for i in range(3)
    )
    deep = {"tool": "agent/explore", "args": {"questions": ["where?", "why?"]}}
    app, watch = make_app(folder, *down, {"calls": [deep], "when": "level 2"}), Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert (result.status, result.error and result.error.kind) == ("failed", "handoff_depth")
    assert len({c.run for c in watch.chunks}) == 4
    await app.aclose()


async def test_three_nested_handoffs_end_well(folder: Path) -> None:
    """C1.4: three are allowed."""
    down = (
        {"calls": [hand("coordinator", f"level {i}")], "when": "go" if i == 0 else f"level {i - 1}"}
        for i in range(3)
    )
    up = ({"text": f"up {i}", "when": "level 2" if i == 0 else f"up {i - 1}"} for i in range(4))
    app = make_app(folder, *down, *up)
    result = await app.runs.run(RunRequest("go", approvals="all"), Watch())
    assert (result.status, result.text) == ("completed", "up 3")
    await app.aclose()


async def test_cancelling_ends_the_nested_run_too(folder: Path) -> None:
    app = make_app(
        folder,
        {"calls": [hand("runner", "sleep now")], "when": "go"},
        {"calls": [shell("sleep 30")], "when": "sleep now"},
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    async with asyncio.timeout(20):
        while not any(c.parent and c.type == "tool_call" for c in watch.chunks):
            await asyncio.sleep(0.01)
    await app.runs.cancel(watch.chunks[0].run)
    assert (await task).status == "cancelled"
    assert [c.type for c in watch.chunks].count("run_finished") == 2
    assert app.runs.running() == ()
    await app.aclose()
