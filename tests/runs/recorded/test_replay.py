"""A recorded session, played again without a model, comes to the same events; a changed one is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import ApprovalAsked, MessageEvent, Notice, ToolResponse
from daiku.domain.runs import RunLimits
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app, shell


async def record(folder: Path) -> list[Chunk]:
    """Reads side by side, a plan, a rejected and an allowed command, a steered word, a second run."""
    (folder / "project").mkdir()
    (folder / "project/a.txt").write_text("one\n")
    steps = [{"name": "look"}, {"name": "mend"}]
    read = {"tool": "files/read", "args": {"path": "a.txt"}}
    app = make_app(
        folder,
        {"text": "plan", "calls": [{"tool": "plan/propose", "args": {"goal": "g", "steps": steps}}]},
        {"text": "look", "calls": [read, read, {"tool": "files/read", "args": {"path": "missing"}}]},
        {"calls": [shell("touch made"), shell("echo two | tee -a a.txt; sleep 0.3")]},
        {"text": "First done."},
        {"calls": [{"tool": "files/write", "args": {"path": "b.txt", "content": "b\n"}}]},
        {"text": "Second done."},
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    for decision in ("reject_once", "allow_once"):
        asked = (await watch.until("approval_asked")).event
        assert isinstance(asked, ApprovalAsked)
        run = watch.chunks[0].run
        watch.forget()
        await app.runs.approve(run, asked.approval_id, decision)
    await watch.until("tool_output")
    await app.runs.steer(run, "hurry")
    session = (await task).session_id
    await app.runs.run(RunRequest("again", session=session, approvals="all"), Watch())
    chunks = app.journal.chunks(session)
    await app.aclose()
    return chunks


async def test_a_session_replays_to_the_same_events(tmp_path: Path) -> None:
    chunks = await record(tmp_path)
    replayed = await replay(chunks)
    assert replayed.difference is None, replayed.difference
    assert replayed.events >= len(chunks) - 2


async def test_a_session_that_was_killed_anywhere_replays_to_where_its_record_ends(tmp_path: Path) -> None:
    chunks = await record(tmp_path)
    types = [chunk.type for chunk in chunks]
    for end in range(1, len(chunks)):
        if types[end - 1 : end + 1] == ["message", "usage"]:
            continue  # a reply is written with its usage, at once
        replayed = await replay(chunks[:end])
        assert replayed.difference is None, (end, types[end - 1], replayed.difference)


async def test_a_session_with_a_todo_list_replays_to_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    written = {"calls": [{"tool": "todo/write", "args": {"items": [{"title": "look"}]}}]}
    app = make_app(tmp_path, written, {"text": "Done."})
    session = (await app.runs.run(RunRequest("go"), Watch())).session_id
    chunks = app.journal.chunks(session)
    await app.aclose()
    assert "todo" in [chunk.type for chunk in chunks]
    assert (await replay(chunks)).difference is None


async def test_a_cancelled_run_replays_to_where_it_was_ended(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    app, watch = make_app(tmp_path, {"calls": [shell("sleep 20")]}), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    await app.runs.cancel(called.run)
    session = (await task).session_id
    replayed = await replay(app.journal.chunks(session))
    assert replayed.difference is None
    await app.aclose()


async def test_what_does_not_follow_from_the_record_is_told(tmp_path: Path) -> None:
    chunks = await record(tmp_path)
    place = next(i for i, c in enumerate(chunks) if isinstance(c.event, ToolResponse))
    changed = [c for i, c in enumerate(chunks) if i != place]
    assert (await replay(changed)).difference is not None
    said = next(i for i, c in enumerate(chunks) if isinstance(c.event, MessageEvent) and c.event.calls)
    event = chunks[said].event
    assert isinstance(event, MessageEvent)
    fewer = event.model_copy(update={"calls": ()})
    chunks[said] = _with_event(chunks[said], fewer)
    difference = (await replay(chunks)).difference
    assert difference is not None
    assert difference.seq >= chunks[said].seq


def _with_event(chunk: Chunk, event: MessageEvent) -> Chunk:
    return Chunk(
        chunk.seq, chunk.time, chunk.session, chunk.run, chunk.agent, event, encode_event(event), chunk.parent
    )


@pytest.mark.parametrize(
    "line",
    [
        {"calls": [{"tool": "no/such", "args": {}}]},
        {"calls": [{"tool": "files/read", "args": {"file": 1}}]},
        {"calls": [{"tool": "files/read", "malformed": "{"}]},
        {"text": "half of", "error": {"kind": "bad_request"}},
        {"error": {"kind": "auth"}},
        {"text": "cut he", "finish": "length"},
        {"text": ""},
    ],
)
async def test_what_went_wrong_replays_to_the_same_events(tmp_path: Path, line: dict[str, Any]) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(tmp_path, line, {"text": "Well then."})
    result = await app.runs.run(RunRequest("go", approvals="all"), Watch())
    replayed = await replay(app.journal.chunks(result.session_id))
    assert replayed.difference is None, replayed.difference
    await app.aclose()


@pytest.mark.slow
async def test_a_reply_that_ran_out_of_time_replays_to_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(tmp_path, {"text": "a word " * 200, "delay_ms": 50})
    limits = RunLimits(max_seconds=1)
    result = await app.runs.run(RunRequest("go", limits=limits), Watch())
    assert result.status == "limit"
    assert result.text == ""  # what was shown is a draft
    replayed = await replay(app.journal.chunks(result.session_id))
    assert replayed.difference is None, replayed.difference
    await app.aclose()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"text": "cut he", "finish": "length"}, "cut off"),
        ({"text": "No.", "finish": "content_filter"}, "refusal"),
        ({"text": ""}, "without a word"),
    ],
)
async def test_an_end_that_the_reply_does_not_tell_is_told(
    tmp_path: Path, line: dict[str, Any], words: str
) -> None:
    (tmp_path / "project").mkdir()
    app, watch = make_app(tmp_path, line), Watch()
    await app.runs.run(RunRequest("go"), watch)
    notices = [c.event.text for c in watch.chunks if isinstance(c.event, Notice)]
    assert len(notices) == 1
    assert words in notices[0]
    await app.aclose()


async def test_a_conversation_that_was_condensed_replays_to_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    reads = [{"calls": [{"tool": "files/read", "args": {"path": name}}]} for name in "abcd"]
    for name in "abcd":
        (tmp_path / "project" / name).write_text(name)
    overflow = {"error": {"kind": "context_overflow", "times": 1}}
    app = make_app(tmp_path, *reads, overflow, {"text": "The story so far."}, {"text": "End."})
    result = await app.runs.run(RunRequest("go", approvals="all"), Watch())
    chunks = app.journal.chunks(result.session_id)
    assert "compacted" in {c.type for c in chunks}
    replayed = await replay(chunks)
    assert replayed.difference is None, replayed.difference
    await app.aclose()


async def test_a_run_at_its_limit_replays_to_the_same_events_and_is_told_in_japanese(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    looks = ({"calls": [{"tool": "files/list", "args": {}}]} for _ in range(4))
    app = make_app(tmp_path, *looks, {"text": "End."})
    result = await app.runs.run(RunRequest("go", approvals="all", limits=RunLimits(max_rounds=2)), Watch())
    assert result.error is not None
    assert "モデル呼び出し回数の上限" in result.error.in_language("ja").message
    replayed = await replay(app.journal.chunks(result.session_id))
    assert replayed.difference is None, replayed.difference
    await app.aclose()
