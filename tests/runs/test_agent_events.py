"""Every agent's run is told of: where it begins, and what it used when it ends, however it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import AgentEnd, AgentStart, RunFinished, RunStarted
from daiku.domain.runs import RunLimits
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app, shell

DURABLE_NOT = ("delta", "thinking", "tool_output")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def hand(agent: str, request: str) -> dict[str, Any]:
    return {"tool": "agent/handoff", "args": {"agent": agent, "request": request}}


def check(chunks: list[Chunk]) -> None:
    """Each run begins with run_started and agent_start and ends with agent_end and run_finished, each once."""
    for run in dict.fromkeys(chunk.run for chunk in chunks):
        types = [chunk.type for chunk in chunks if chunk.run == run]
        assert types[:2] == ["run_started", "agent_start"]
        assert types[-2:] == ["agent_end", "run_finished"]
        for kind in ("run_started", "agent_start", "agent_end", "run_finished"):
            assert types.count(kind) == 1
        assert len({chunk.agent for chunk in chunks if chunk.run == run} - {"user"}) == 1


async def test_an_agent_that_hands_on_and_the_other_are_both_told_of_with_their_own_usage(
    folder: Path,
) -> None:
    """R1.29: agent_end with the usage."""
    app = make_app(
        folder,
        {"text": "I ask the runner.", "calls": [hand("runner", "say hi")], "when": "go"},
        {"calls": [shell("echo hi")], "when": "say hi"},
        {"text": "It said hi.", "when": "Exit code"},
        {"text": "Done.", "when": "It said hi."},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    check(watch.chunks)
    stored = app.journal.chunks(result.session_id)
    check(stored)
    starts = [chunk.event for chunk in stored if isinstance(chunk.event, AgentStart)]
    begun = [chunk.event for chunk in stored if isinstance(chunk.event, RunStarted)]
    assert [start.model for start in starts] == [start.model for start in begun] != ["", ""]
    inner, outer = (chunk.event.usage for chunk in stored if isinstance(chunk.event, AgentEnd))
    whole = next(c.event.usage for c in stored if isinstance(c.event, RunFinished) and c.parent is None)
    assert inner.prompt_tokens > 0
    assert outer.plus(inner).prompt_tokens == whole.prompt_tokens == result.usage.prompt_tokens
    assert outer.plus(inner).completion_tokens == whole.completion_tokens
    assert (await replay(stored)).difference is None
    await app.aclose()


async def test_a_run_that_fails_is_cancelled_or_meets_a_limit_ends_its_agent_too(folder: Path) -> None:
    app = make_app(folder, {"text": "a", "calls": [shell("touch made")], "when": "go"})
    limited = RunRequest("go", approvals="all", limits=RunLimits(max_rounds=1))
    for request, status in ((limited, "limit"), (RunRequest("nothing is written for this"), "failed")):
        watch = Watch()
        assert (await app.runs.run(request, watch)).status == status
        check(watch.chunks)
    app2 = make_app(folder, {"calls": [shell("sleep 30")]}, home=folder / "home2")
    watch = Watch()
    task = asyncio.create_task(app2.runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    await app2.runs.cancel(called.run)
    assert (await task).status == "cancelled"
    check(watch.chunks)
    await app.aclose()
    await app2.aclose()


async def test_a_resumed_run_tells_of_its_agent_once(folder: Path) -> None:
    lines = ({"calls": [shell("touch made")]}, {"text": "Done."})
    app, watch = make_app(folder, *lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = await watch.until("approval_asked")
    await app.runs.pause(asked.run)
    paused = await task
    assert paused.status == "paused"
    assert "agent_end" not in watch.types()
    await app.aclose()
    again = make_app(folder, *lines)
    result = await again.runs.resume(paused.run_id, Watch(), "all")
    assert result.status == "completed"
    stored = again.journal.chunks(result.session_id)
    check(stored)
    file = folder / "home/traces" / f"{result.session_id}.jsonl"
    await again.aclose()
    events = [line.split('"')[3] for line in file.read_text().splitlines()]
    assert events == ["agent_start", "tool_start", "tool_end", "agent_end"]


async def test_a_run_that_is_ended_on_record_ends_its_agents(folder: Path) -> None:
    """The runs of a process that was killed, a nested one among them."""
    lines = (
        {"calls": [hand("runner", "say hi")], "when": "go"},
        {"calls": [shell("touch made")], "when": "say hi"},
    )
    app, watch = make_app(folder, *lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = await watch.until("approval_asked")
    await app.runs.stop_all()
    await task
    await app.aclose()
    again = make_app(folder, *lines)
    result = await again.runs.cancel(watch.chunks[0].run)
    assert result.status == "cancelled"
    stored = again.journal.chunks(asked.session)
    check(stored)
    await again.aclose()
    file = folder / "home/traces" / f"{asked.session}.jsonl"
    assert [line.split('"')[3] for line in file.read_text().splitlines()].count("agent_end") == 2


async def test_the_record_of_an_earlier_version_is_replayed_without_them(folder: Path) -> None:
    app, watch = make_app(folder, {"text": "Done."}), Watch()
    await app.runs.run(RunRequest("go"), watch)
    stored = [c for c in watch.chunks if c.type not in (*DURABLE_NOT, "agent_start", "agent_end")]
    assert (await replay(stored)).difference is None
    await app.aclose()
