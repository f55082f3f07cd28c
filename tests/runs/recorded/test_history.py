"""A conversation taken up from any point of its past: it folds, goes on, undoes for itself; the other stays."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import ApprovalAsked, Event, InputAsked, PlanEvent, RunFinished, RunStarted
from daiku.domain.runs import has_answer
from daiku.run.recorded.history import events_of, open_nested_starts
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import fold
from tests.runs.playing import Watch, make_app, shell

TEXT = "".join(f"line {i}\n" for i in range(1, 21))


def tool(name: str, **args: Any) -> dict[str, Any]:
    return {"tool": name, "args": args}


def edit(*edits: tuple[str, str]) -> dict[str, Any]:
    return tool("files/edit", path="a.txt", edits=[{"search": a, "replace": b} for a, b in edits])


async def rich(folder: Path) -> tuple[App, str, dict[int, str]]:
    """A session with a plan, edits of which some hunks were chosen, a question, commands, a nested run,
    a rejection, an undo and a second run; and what a.txt held when each chunk was written."""
    (folder / "project").mkdir()
    file = folder / "project/a.txt"
    file.write_text(TEXT)
    lines: list[dict[str, Any]] = [
        {"calls": [tool("plan/propose", goal="g", steps=[{"name": "look"}, {"name": "mend"}])]},
        {"calls": [edit(("line 2\n", "two\n"), ("line 18\n", "eighteen\n"))]},
        {"calls": [tool("user/ask", question="Go on?"), shell("echo hi; exit 3")]},
        {"calls": [tool("files/write", path="b.txt", content="b\n"), edit(("line 9\n", "nine\n"))]},
        {"calls": [tool("agent/handoff", agent="runner", request="look at it")]},
        {"calls": [shell("echo nested")], "agent": "now you run commands"},
        {"text": "Nested done.", "agent": "now you run commands"},
        {"text": "First done."},
        {"calls": [edit(("line 5\n", "five\n"))]},
        {"text": "Second done."},
    ]
    app = make_app(folder, *({"agent": "You work inside", **line} for line in lines))
    held: dict[int, str] = {}
    watch = Watch()

    def listen(chunk: Chunk) -> None:
        held[chunk.seq] = file.read_text()
        watch(chunk)

    task = asyncio.create_task(app.runs.run(RunRequest("go"), listen))
    answered: set[str] = set()
    while not task.done():
        await asyncio.sleep(0.005)
        for chunk in tuple(watch.chunks):
            event = chunk.event
            if isinstance(event, ApprovalAsked) and event.approval_id not in answered:
                answered.add(event.approval_id)
                hunks = (0,) if event.hunks == 2 else None
                await app.runs.approve(chunk.run, event.approval_id, "allow_once", hunks=hunks)
            if isinstance(event, InputAsked) and event.input_id not in answered:
                answered.add(event.input_id)
                await app.runs.answer(chunk.run, event.input_id, "yes")
    session = (await task).session_id
    first = next(iter((await app.reviews.changes(session))["a.txt"].spans))
    assert first.birth
    await app.reviews.decide(session, "reject", "b.txt", None)
    await app.runs.run(RunRequest("again", session=session, approvals="all"), listen)
    await app.reviews.undo(session)
    return app, session, held


def without_ids(chunks: Sequence[Chunk]) -> list[tuple[int, str, str]]:
    """Chunks with every id of ours numbered in the order in which it appears."""
    names: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"#{len(names)}")

    ours = re.compile(r"(?:run|appr|input|checkpoint)_[0-9a-f]{16}|plan_[0-9a-f]{8}")
    return [(c.seq, c.type, ours.sub(number, f"{c.run} {c.parent} {c.data}")) for c in chunks]


@pytest.mark.slow
async def test_a_fork_at_any_point_folds_goes_on_and_leaves_the_other_as_it_was(tmp_path: Path) -> None:
    app, session, _ = await rich(tmp_path)
    chunks = app.journal.chunks(session)
    original = [c.json() for c in chunks]
    types = {c.type for c in chunks}
    assert types >= {"plan", "edit", "review", "restored", "approval_asked", "input_asked", "handoff_end"}
    (tmp_path / "next.jsonl").write_text((json.dumps({"text": "Well then."}) + "\n") * 40)
    for chunk in chunks:
        fork = (await app.reviews.fork(session, chunk.seq)).session_id
        copied = app.journal.chunks(fork)
        end = copied[-1].seq  # behind a run's last words that is its end
        assert end == chunk.seq or (end > chunk.seq and isinstance(copied[-1].event, RunFinished))
        assert without_ids(copied) == without_ids([c for c in chunks if c.seq <= end])
        assert not {c.run for c in copied} & {c.run for c in chunks}
        state = fold(events_of(copied))
        assert state.request.begun
        model = f"scripted/{tmp_path / 'next.jsonl'}"
        request = RunRequest("and now?", session=fork, model=model, approvals="all")
        result = await app.runs.run(request, Watch())
        assert (result.status, result.text) == ("completed", "Well then."), (chunk, result.error)
        after = app.journal.chunks(fork)
        assert without_ids(after[: len(copied)]) == without_ids(copied)
        assert fold(events_of(after)).finished is not None
        assert not fold(events_of(after)).calls.pending
        await app.reviews.changes(fork)
        if isinstance(chunk.event, RunFinished | RunStarted) and chunk.parent is None:
            assert (await replay(after)).difference is None, chunk
    assert [c.json() for c in app.journal.chunks(session)] == original
    await app.aclose()


@pytest.mark.slow
async def test_an_open_run_goes_on_in_the_fork_from_where_it_was(tmp_path: Path) -> None:
    app, session, _ = await rich(tmp_path)
    chunks = app.journal.chunks(session)
    original = [c.json() for c in chunks]
    ends = [c for c in chunks if isinstance(c.event, RunFinished) and c.parent is None]
    for chunk in chunks:
        if chunk.seq >= ends[0].seq:
            break
        fork = (await app.reviews.fork(session, chunk.seq)).session_id
        run = next(c.run for c in app.journal.chunks(fork) if isinstance(c.event, RunStarted))
        watch = Watch()
        task = asyncio.create_task(app.runs.resume(run, watch, "all"))
        answered: set[str] = set()
        while not task.done():
            await asyncio.sleep(0.002)
            for seen in tuple(watch.chunks):
                event = seen.event
                if isinstance(event, InputAsked) and event.input_id not in answered:
                    answered.add(event.input_id)
                    if app.runs.running():
                        await app.runs.answer(seen.run, event.input_id, "yes")
        result = await task
        assert has_answer(result.status) or result.status == "limit", chunk
        assert {each.kind for each in result.reasons} <= {"edit_not_applied"}, (
            chunk
        )  # a.txt is edited already
    assert [c.json() for c in app.journal.chunks(session)] == original
    await app.aclose()


@pytest.mark.slow
async def test_with_its_files_a_fork_has_them_as_they_were_at_that_point(tmp_path: Path) -> None:
    app, session, held = await rich(tmp_path)
    file = tmp_path / "project/a.txt"
    chunks = app.journal.chunks(session)
    last = file.read_text()
    for chunk in (c for c in chunks if c.type in ("run_started", "tool_call", "tool_response", "message")):
        fork = await app.reviews.fork(session, chunk.seq, restore_files=True)
        assert file.read_text() == held[chunk.seq], chunk
        changes = await app.reviews.changes(fork.session_id)
        assert not any(span.touched for review in changes.values() for span in review.spans)
        a = changes.get("a.txt")
        assert (a.base if a is not None else file.read_text()) == TEXT
        redo = [c.event for c in app.journal.chunks(fork.session_id) if c.type == "restored"]
        if file.read_text() != last:
            await app.reviews.restore(redo[-1].redo)  # type: ignore[union-attr]
        assert file.read_text() == last
    await app.aclose()


async def test_a_fork_undoes_its_own_edits_and_its_plan_is_its_own(tmp_path: Path) -> None:
    app, session, _ = await rich(tmp_path)
    chunks = app.journal.chunks(session)
    end = next(c for c in chunks if isinstance(c.event, RunFinished) and c.parent is None)
    fork = (await app.reviews.fork(session, end.seq, restore_files=True)).session_id
    assert (tmp_path / "project/a.txt").read_text() != TEXT
    (plan,) = {c.event.plan.plan_id for c in app.journal.chunks(fork) if isinstance(c.event, PlanEvent)}
    changed = app.journal.get_plan(plan).model_copy(update={"name": "other"})
    await app.runs.change_plan(changed)
    (before,) = {c.event.plan.plan_id for c in chunks if isinstance(c.event, PlanEvent)}
    assert app.journal.get_plan(before).name != "other"
    await app.reviews.undo(fork)
    assert (tmp_path / "project/a.txt").read_text() == TEXT
    assert await app.reviews.changes(fork) == {}
    assert [c.json() for c in app.journal.chunks(session)] == [c.json() for c in chunks]
    await app.aclose()


def test_nested_runs_that_have_not_ended_are_ended_from_the_innermost_out() -> None:
    def chunk(seq: int, event: Event, run: str, parent: str | None = None) -> Chunk:
        return Chunk(seq, "2026-01-01T00:00:00.000Z", "s", run, "coder", event, encode_event(event), parent)

    begun = RunStarted(prompt="x")
    chunks = [
        chunk(1, begun, "top"),
        chunk(2, begun, "done", "top"),
        chunk(3, RunFinished(status="completed"), "done", "top"),
        chunk(4, begun, "outer", "top"),
        chunk(5, begun, "inner", "outer"),
    ]
    assert [start.run for start in open_nested_starts(chunks, "top")] == ["inner", "outer"]
