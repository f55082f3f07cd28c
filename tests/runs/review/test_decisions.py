"""Reviewing over a session's life: Daiku edits, the person types, decides, takes back, starts again."""

from __future__ import annotations

import asyncio
import errno
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from daiku.app import App
from daiku.domain.events import (
    ApprovalAsked,
    CheckpointEvent,
    Edit,
    Event,
    InputAsked,
    RunFinished,
    RunStarted,
)
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.review import ReviewHunk, list_hunks
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import fold
from daiku.settings.config import Config
from daiku.tools.tool import ToolContext
from tests.runs.playing import Watch, make_app

SLOTS = 8


@dataclass
class Story:
    """A file of slots with a line between each: what everybody did to each slot, and what is expected."""

    folder: Path
    app: App
    session: str
    base: list[str] = field(default_factory=lambda: [f"slot {i}\r\n" for i in range(SLOTS)])
    now: list[str] = field(default_factory=lambda: [f"slot {i}\r\n" for i in range(SLOTS)])
    redo: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    step: int = 0

    @property
    def file(self) -> Path:
        return self.folder / "project/a.txt"

    def text(self, slots: list[str]) -> str:
        return "".join(line for i, slot in enumerate(slots) for line in (slot, f"between {i}\r\n")) + "end"

    async def daiku(self, slot: int) -> None:
        """Change a slot with the tool, as a run does."""
        self.step += 1
        new = "" if self.step % 4 == 0 else f"daiku {self.step} {slot}\r\n" * (1 + self.step % 2)
        if new == self.now[slot]:
            return
        after = f"between {slot}\r\n"
        edit: dict[str, JsonValue] = {"search": self.now[slot] + after, "replace": new + after}
        self.now[slot] = new
        run = self.app.runs.last_run(self.session)
        writer = self.app.journal.writer(self.session)

        def emit(event: Event) -> None:
            writer.write(run, None, "coordinator", (event,))

        services = self.app.runs.services
        context = ToolContext(
            self.session, run, "c", services.workspace, self.app.checkpoints, Config(), emit=emit
        )
        call = ToolCall(tool="files/edit", args={"path": "a.txt", "edits": [edit]})
        result = await self.app.registry.call(call, context)
        assert result.ok, result.text

    def person(self, slot: int) -> None:
        """Type in a slot that holds nothing of Daiku's."""
        if self.now[slot] == self.base[slot]:
            self.step += 1
            self.base[slot] = self.now[slot] = f"person {self.step} {slot}\r\n"
            self.file.write_bytes(self.text(self.now).encode())

    async def decide(self, slot: int, *, accept: bool) -> None:
        found = await self.hunks()
        if slot not in found:
            return
        before = (list(self.base), list(self.now))
        if accept:
            self.base[slot] = self.now[slot]
        else:
            self.now[slot] = self.base[slot]
        done = await self.app.reviews.decide(
            self.session, "accept" if accept else "reject", "a.txt", [found[slot].id]
        )
        assert done is not None
        self.redo.append((done, *before))

    async def take_back(self) -> None:
        """Go back to before the last decision, with all that came after it."""
        if self.redo:
            point, self.base, self.now = self.redo.pop()
            await self.app.reviews.restore(point)

    async def restart(self) -> None:
        await self.app.aclose()
        self.app = make_app(self.folder)

    async def hunks(self) -> dict[int, ReviewHunk]:
        changes = await self.app.reviews.changes(self.session)
        if "a.txt" not in changes:
            return {}
        found: dict[int, ReviewHunk] = {}
        for hunk in list_hunks(changes["a.txt"]):
            # The slot is told by the line before it: "between i" stands behind slot i.
            lines = str(changes["a.txt"].base).split("\n")
            slot = 0 if hunk.span.old == 0 else int(lines[hunk.span.old - 1].split()[-1]) + 1
            found[slot] = hunk
        return found

    async def check(self) -> None:
        assert self.file.read_bytes().decode() == self.text(self.now)
        assert await self.app.reviews.original(self.session, "a.txt") == self.text(self.base)
        found = await self.hunks()
        assert set(found) == {i for i in range(SLOTS) if self.base[i] != self.now[i]}
        assert not any(hunk.span.touched for hunk in found.values())


moves = st.one_of(
    st.tuples(st.just("daiku"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("person"), st.integers(0, SLOTS - 1)),
    st.tuples(st.sampled_from(["accept", "reject"]), st.integers(0, SLOTS - 1)),
    st.tuples(st.sampled_from(["take back", "restart"]), st.just(0)),
)


@settings(max_examples=15)
@given(st.lists(moves, max_size=14))
def test_any_story_ends_with_exactly_what_was_accepted_and_typed(story: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(told(Path(folder), story))


async def test_a_decision_in_the_middle_of_a_run_replays_to_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("old\n")
    write = {"tool": "files/edit", "args": {"path": "a.txt", "edits": [{"search": "old", "replace": "new"}]}}
    ask = {"tool": "user/ask", "args": {"question": "Go on?"}}
    app = make_app(tmp_path, {"calls": [write]}, {"calls": [ask]}, {"text": "done"})
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go", approvals="edits"), watch))
    asked = await watch.until("input_asked")
    assert isinstance(asked.event, InputAsked)
    await app.reviews.decide(asked.session, "reject", None, None)
    await app.runs.answer(asked.run, asked.event.input_id, "yes")
    assert (await task).status == "completed"
    chunks = app.journal.chunks(asked.session)
    assert [c.type for c in chunks].index("review") < [c.type for c in chunks].index("input_given")
    assert (await replay(chunks)).difference is None
    told = [m.text for m in fold(c.event for c in chunks).conversation.messages if "rejected" in m.text]
    assert len(told) == 1
    await app.aclose()


async def test_what_takes_a_rejection_back_is_kept_before_a_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("old\n")
    write = {"tool": "files/edit", "args": {"path": "a.txt", "edits": [{"search": "old", "replace": "new"}]}}
    app = make_app(tmp_path, {"calls": [write]}, {"text": "done"})
    session = (await app.runs.run(RunRequest("go", approvals="edits"), Watch())).session_id

    async def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(type(app.workspace), "apply", full)
    with pytest.raises(OSError, match="no space"):
        await app.reviews.decide(session, "reject", None, None)
    kept = app.checkpoints.list(session)[-1]
    assert (kept.kind, [file.path for file in kept.files]) == ("review", ["a.txt"])
    await app.aclose()


async def about_to_change(app: App, session: str, run: str, change: FileChange) -> str:
    """The checkpoint of an edit that is not on record yet."""
    point = await app.checkpoints.take(session, run, [change.path], Patch(files=(change,)))
    kept = CheckpointEvent(checkpoint_id=point, files=(change.path,))
    app.journal.writer(session).write(run, None, "c", (kept,))
    return point


async def test_an_edit_whose_process_died_before_it_was_on_record_is_reviewed_and_can_be_undone(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    file = tmp_path / "project/a.txt"
    file.write_text("old\nother\n")
    app = make_app(tmp_path, command="allow")
    session = app.journal.add_session(app.runs.services.workspace_key)
    run = "run_0000000000000001"
    app.journal.writer(session).write(run, None, "c", (RunStarted(prompt="x"),))
    change = FileChange(path="a.txt", kind="edit", old="old\nother\n", new="new\nother\n")
    point = await about_to_change(app, session, run, change)
    assert await app.reviews.changes(session) == {}
    file.write_text("new\nother\n")
    await app.aclose()
    app = make_app(tmp_path)
    (hunk,) = list_hunks((await app.reviews.changes(session))["a.txt"])
    assert (hunk.old, hunk.new) == (("old\n",), ("new\n",))
    await app.reviews.restore(point)
    assert file.read_text() == "old\nother\n"
    assert await app.reviews.changes(session) == {}
    await app.aclose()


async def test_an_edit_that_is_looked_at_before_it_is_on_record_is_not_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    file = tmp_path / "project/a.txt"
    file.write_text("old\nother\n")
    app = make_app(tmp_path)
    session = app.journal.add_session(app.runs.services.workspace_key)
    run = "run_0000000000000001"
    write = app.journal.writer(session).write
    write(run, None, "c", (RunStarted(prompt="x"),))
    change = FileChange(path="a.txt", kind="edit", old="old\nother\n", new="new\nother\n")
    point = await about_to_change(app, session, run, change)
    file.write_text("new\nother\n")
    assert len((await app.reviews.changes(session))["a.txt"].spans) == 1
    file.write_text("new, formatted\nother\n")
    formatted = change.model_copy(update={"new": "new, formatted\nother\n"})
    await app.checkpoints.settle(point, Patch(files=(formatted,)))
    stat = FileStat(path="a.txt", kind="edit")
    write(run, None, "c", (Edit(files=(stat,), checkpoint_id=point),))
    (hunk,) = list_hunks((await app.reviews.changes(session))["a.txt"])
    assert (hunk.old, hunk.new, hunk.span.touched) == (("old\n",), ("new, formatted\n",), False)
    await app.aclose()


async def test_hunks_that_were_chosen_while_the_run_was_away_are_those_that_are_made(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    file = tmp_path / "project/a.txt"
    file.write_text("".join(f"line {i}\n" for i in range(20)))
    edits: list[JsonValue] = [
        {"search": "line 2\n", "replace": "two\n"},
        {"search": "line 17\n", "replace": "late\n"},
    ]
    write = {"tool": "files/edit", "args": {"path": "a.txt", "edits": edits}}
    lines = ({"calls": [write]}, {"text": "done"})
    app, watch = make_app(tmp_path, *lines), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = await watch.until("approval_asked")
    assert isinstance(asked.event, ApprovalAsked)
    assert (await app.runs.pause(asked.run)).status == "paused"
    await task
    await app.aclose()
    app = make_app(tmp_path, *lines)
    await app.runs.approve(asked.run, asked.event.approval_id, "allow_once", hunks=(1,))
    assert (await app.runs.resume(asked.run, Watch())).status == "completed"
    assert "line 2\n" in file.read_text()
    assert "late\n" in file.read_text()
    assert (await replay(app.journal.chunks(asked.session))).difference is None
    await app.aclose()


async def told(folder: Path, moves: list[tuple[str, int]]) -> None:
    (folder / "project").mkdir()
    app = make_app(folder)
    session = app.journal.add_session(app.runs.services.workspace_key)
    app.journal.writer(session).write(
        "run_0000000000000001", None, "c", (RunStarted(prompt="x"), RunFinished(status="completed"))
    )
    story = Story(folder, app, session)
    story.file.write_bytes(story.text(story.now).encode())
    for move, slot in moves:
        match move:
            case "daiku":
                await story.daiku(slot)
            case "person":
                story.person(slot)
            case "accept" | "reject":
                await story.decide(slot, accept=move == "accept")
            case "take back":
                await story.take_back()
            case _:
                await story.restart()
        await story.check()
    await story.app.aclose()
