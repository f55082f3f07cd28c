"""What the first request of a run says of its surroundings, looked at on the disk and never waited for long."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import Notice, RunStarted
from daiku.domain.messages import UserMessage
from daiku.domain.runs import Cursor, Position
from daiku.run import starting
from daiku.run.recorded.history import events_of
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import fold
from daiku.run.runs import Runs
from tests.runs.playing import Watch, make_app, shell

SAYS = {"text": "Done."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def git(folder: Path, *argv: str) -> None:
    subprocess.run(["git", "-C", str(folder / "project"), *argv], check=True, capture_output=True)


def known(watch: Watch) -> dict[str, str]:
    started = next(c.event for c in watch.chunks if isinstance(c.event, RunStarted))
    return {fact.name: fact.text for fact in started.environment}


async def test_the_request_begins_with_what_holds_around_it(folder: Path) -> None:
    git(folder, "init", "-b", "trunk")
    (folder / "project/new.txt").write_text("x")
    app, watch = make_app(folder, SAYS), Watch()
    result = await app.runs.run(RunRequest("Mend it", approvals="none"), watch)
    facts = known(watch)
    assert facts["Git"] == "branch trunk, no commits yet, 1 not tracked"
    assert facts["Folder"] == str(folder / "project")
    assert facts["Person"].startswith("nobody is there")
    assert facts["Sandbox"].startswith("none")
    asked = fold(events_of(app.journal.chunks(result.session_id))).conversation.messages[0]
    assert isinstance(asked, UserMessage)
    assert asked.text.startswith("<environment>\nDate: ")
    assert asked.words == "Mend it"


async def test_a_change_of_mode_is_all_that_the_next_run_is_told(folder: Path) -> None:
    app = make_app(folder, SAYS, SAYS, SAYS)
    session = (await app.runs.run(RunRequest("One"), Watch())).session_id
    for mode in ("plan", "act"):
        await app.runs.run(RunRequest("Next", session=session, mode=mode), Watch())
    chunks = app.journal.chunks(session)
    said = [m.text for m in fold(events_of(chunks)).conversation.messages if isinstance(m, UserMessage)]
    assert not [text for text in said[1:] if "Date" in text or "Folder" in text]
    assert "\nMode: plan" in said[1]
    assert "\nMode: act" in said[2]
    assert (await replay(chunks)).difference is None


async def test_who_goes_on_with_a_run_tells_it_that_somebody_is_there_now(folder: Path) -> None:
    app, first = make_app(folder, {"calls": [shell("touch made")]}, SAYS), Watch()
    result = await app.runs.run(RunRequest("Do it", attended=False), first)
    assert known(first)["Person"].startswith("nobody")
    chunks = [c for c in app.journal.chunks(result.session_id) if c.seq <= first.chunks[1].seq]
    fork = (await app.reviews.fork(result.session_id, chunks[-1].seq)).session_id
    again = Watch()
    await app.runs.resume(app.runs.last_run(fork), again, "all")
    news = [c.event for c in again.chunks if isinstance(c.event, Notice) and c.event.environment]
    assert len(news) == 1
    messages = fold(events_of(app.journal.chunks(fork))).conversation.messages
    told = [m.text for m in messages if isinstance(m, UserMessage) and m.kind == "note"]
    assert ["Person: is there and can be asked" in text for text in told] == [True]


async def test_a_git_that_does_not_answer_is_not_waited_for(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(folder, "init", "-b", "trunk")
    programs = tmp_path_factory.mktemp("programs")  # not in the workspace, whose programs are not run
    slow = programs / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr("daiku.workspace.programs.SYSTEM_FOLDERS", ())
    monkeypatch.setattr(starting, "GIT_SECONDS", 0.1)
    watch = Watch()
    await make_app(folder, SAYS).runs.run(RunRequest("Mend it"), watch)
    assert known(watch)["Git"] == starting.TOO_SLOW


async def test_a_repository_that_is_not_used_is_not_told_as_none(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    git(folder, "init", "-b", "trunk", "--separate-git-dir", str(folder / "elsewhere/kept"))
    git(folder, "config", "core.worktree", str(folder / "elsewhere"))
    git(folder, "config", "include.path", str(folder / "more"))
    watch = Watch()
    await make_app(folder, SAYS).runs.run(RunRequest("Mend it"), watch)
    assert known(watch)["Git"] == starting.NOT_USED


@dataclass
class OpenTabs:
    """An editor that only knows what is open."""

    names: tuple[str, ...]

    def open_files(self) -> tuple[str, ...]:
        return self.names


async def test_the_editor_s_open_files_and_cursor_are_told_but_nothing_hidden(folder: Path) -> None:
    project = folder / "project"
    for name in ("a.py", "b.py", "private.txt"):
        (project / name).write_text("x\n")
    (project / ".daikuignore").write_text("private.txt\n")
    services = make_app(folder, SAYS).runs.services
    tabs: Any = OpenTabs(("a.py", "b.py", "private.txt"))
    cursor = Cursor(uri=(project / "b.py").as_uri(), position=Position(line=11, character=0))
    watch = Watch()
    await Runs(replace(services, editor=tabs)).run(RunRequest("Mend it", cursor=cursor), watch)
    assert known(watch)["Editor"] == "open files: a.py, b.py; the cursor is at b.py:12"
    away = Cursor(uri="file:///etc/passwd", position=Position(line=0, character=0))
    elsewhere = Watch()
    await Runs(replace(services, editor=tabs)).run(RunRequest("Mend it", cursor=away), elsewhere)
    assert known(elsewhere)["Editor"] == "open files: a.py, b.py"


async def test_a_run_that_asks_no_model_looks_at_nothing(folder: Path) -> None:
    app, watch = make_app(folder), Watch()
    await app.runs.run(RunRequest("x", agent="committer"), watch)
    assert known(watch) == {}
