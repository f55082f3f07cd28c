"""`daiku playbook adapt`: offline learning from the stored sessions of a folder, as a nightly job runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import RunStarted
from daiku.domain.playbook import Delta
from daiku.playbook.repository import open_playbooks
from daiku.settings import home
from daiku.settings.trust import set_trusted
from daiku.store.lock import SessionLock
from daiku.trace.stores import open_stores
from tests.cli.conftest import Daiku
from tests.playbook.happened import ran

Changes = Callable[[], tuple[Delta, ...]]
NIGHTLY = ("playbook", "adapt", "--offline", "--max-cost", "0.50", "--json")
"""What a crontab of an earlier version calls."""


@pytest.fixture
def folder(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted folder with three stored sessions: in each a command failed and another one passed in its place."""
    monkeypatch.chdir(workspace)
    set_trusted(home(os.environ), workspace, trusted=True)
    stores = open_stores(daiku_home / "daiku.db", str)
    for minute, tool in enumerate(("grut", "blib", "zock")):
        session = stores.journal.add_session(workspace=str(workspace))
        events = [RunStarted(prompt=f"build with {tool}"), *ran(tool, 127), *ran(f"uv run {tool}")]
        stores.journal.writer(session).write(f"run_{tool}", None, "coordinator", events)
        at = f"2026-01-01T00:0{minute}:00.000Z"  # the three are written within a millisecond
        stores.database.write("UPDATE sessions SET updated_at = ? WHERE id = ?", (at, session))
    stores.close()
    return workspace


@pytest.fixture
def changes(folder: Path, daiku_home: Path) -> Changes:
    """The changes of the folder's playbook."""

    def found() -> tuple[Delta, ...]:
        stores = open_stores(daiku_home / "daiku.db", str)
        store = open_playbooks(stores.database, (folder,)).repository
        assert store is not None
        deltas = store.deltas()
        stores.close()
        return deltas

    return found


def test_each_stored_session_is_learned_from_once(daiku: Daiku, folder: Path, changes: Changes) -> None:
    """X.12, R1.67: the nightly batch. Lessons wait for review; the second night finds nothing new."""
    done = daiku(*NIGHTLY)
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    assert (found["sessions"], found["dryRun"]) == (3, False)
    waiting = changes()
    assert [each.status for each in waiting] == ["proposed"] * len(waiting)
    assert {tool for tool in ("grut", "blib", "zock") for each in waiting if tool in each.content} == {
        *("grut", "blib", "zock")
    }
    assert [each["bulletId"] for each in found["changes"]] == [each.id for each in waiting]
    assert len({place.session_id for each in waiting for place in each.evidence}) == 3
    again = json.loads(daiku(*NIGHTLY).out)
    assert (again["sessions"], again["changes"]) == (3, [])
    assert changes() == waiting


def test_each_change_is_a_line(daiku: Daiku, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = daiku("playbook", "adapt")
    first, *lines = done.out.splitlines()
    assert first == f"Sessions read: 3. Changes of the playbook: {len(lines)}."
    assert all(line.startswith("r") and "  waits  " in line for line in lines)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "読み込んだセッション: 3 件" in daiku("playbook", "adapt").out


def test_a_dry_run_counts_sessions_and_learns_nothing(daiku: Daiku, folder: Path, changes: Changes) -> None:
    """X.12, PROTOCOL 9: `adapt --dry-run`; a folder without trust may be looked at."""
    set_trusted(home(os.environ), folder, trusted=False)
    assert "Sessions to learn from: 3." in daiku("playbook", "adapt", "--dry-run").out
    found = json.loads(daiku("playbook", "adapt", "--dry-run", "--json").out)
    assert found == {"sessions": 3, "changes": [], "dryRun": True}
    assert changes() == ()


def test_the_newest_sessions_come_first(daiku: Daiku, folder: Path, changes: Changes) -> None:
    """X.12, PROTOCOL 9: `adapt --cases N`."""
    assert json.loads(daiku(*NIGHTLY, "--cases", "1").out)["sessions"] == 1
    assert all("zock" in each.content for each in changes())
    assert changes()
    assert daiku("playbook", "adapt", "--cases", "0").code == 2


def test_with_learning_on_auto_lessons_about_allowed_commands_are_applied(
    daiku: Daiku, folder: Path, changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings hold for the nightly job as for a run."""
    monkeypatch.setenv("DAIKU_PLAYBOOK__LEARN", "auto")
    monkeypatch.setenv("DAIKU_APPROVALS__COMMANDS_ALLOW", '["uv run", "grut", "blib", "zock"]')
    assert "  applied  " in daiku("playbook", "adapt").out
    assert {each.status for each in changes()} == {"applied"}


def test_a_folder_without_trust_and_learning_that_is_off_are_refused(
    daiku: Daiku, folder: Path, changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X.12: nothing is learned that the user did not allow."""
    for name, value, said in (("LEARN", "off", "learn"), ("ENABLED", "false", "enabled")):
        monkeypatch.setenv(f"DAIKU_PLAYBOOK__{name}", value)
        done = daiku(*NIGHTLY)
        assert (done.code, f"playbook.{said}" in done.err) == (2, True)
        monkeypatch.delenv(f"DAIKU_PLAYBOOK__{name}")
    set_trusted(home(os.environ), folder, trusted=False)
    done = daiku(*NIGHTLY)
    assert (done.code, "daiku config trust" in done.err) == (2, True)
    assert changes() == ()


def test_two_at_once_do_not_learn_the_same(
    daiku: Daiku, folder: Path, changes: Changes, daiku_home: Path
) -> None:
    """X.12: one nightly job at a time."""
    other = SessionLock(daiku_home / "locks" / "adapt.lock")
    assert other.acquire()
    done = daiku(*NIGHTLY)
    assert (done.code, changes()) == (2, ())
    assert "Another process" in done.err
    other.release()
    assert daiku(*NIGHTLY).code == 0


@pytest.mark.parametrize("option", [("--repeat", "2"), ("--yes",), ("-y",)])
def test_options_of_the_trials_are_refused_with_what_to_do(
    daiku: Daiku, folder: Path, changes: Changes, option: tuple[str, ...]
) -> None:
    """X.12, PROTOCOL 10c: the trials are removed."""
    done = daiku("playbook", "adapt", *option)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "daiku eval --with-lesson ID" in done.err
    assert changes() == ()
    assert option[0] not in daiku("playbook", "adapt", "--help").out
