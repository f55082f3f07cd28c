"""What a conversation did to files, from the terminal: shown, taken back, and taken back again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Daiku

Script = Callable[..., str]
WRITE = {"calls": [{"tool": "files/write", "args": {"path": "a.txt", "content": "new\n"}}]}
READ = {"calls": [{"tool": "files/read", "args": {"path": "a.txt"}}]}
TOUCH = {"calls": [{"tool": "shell/run", "args": {"command": "touch made && exit 7"}}]}
DONE = {"text": "done"}


@pytest.fixture
def session(script: Script, daiku: Daiku, workspace: Path) -> str:
    (workspace / "a.txt").write_text("old\n")
    run = daiku("run", "--model", script(READ, WRITE, TOUCH, DONE), "--approve", "all", "--json", "go")
    chunks: list[dict[str, Any]] = run.chunks()
    assert (workspace / "a.txt").read_text() == "new\n"
    return chunks[0]["session"]


def test_changes_are_shown_as_a_diff_and_as_json(daiku: Daiku, session: str) -> None:
    text = daiku("sessions", "changes", session).out
    assert "-old\n+new\n" in text
    (file,) = json.loads(daiku("sessions", "changes", session, "--json").out)
    assert (file["path"], file["kind"], file["hunks"][0]["text"]) == ("a.txt", "edit", "-old\n+new\n")


def test_undo_names_what_stays_and_can_be_undone(daiku: Daiku, session: str, workspace: Path) -> None:
    done = daiku("sessions", "undo", session)
    assert (workspace / "a.txt").read_text() == "old\n"
    assert (workspace / "made").exists()
    assert "touch made && exit 7  (exit code 7)" in done.out
    assert "Nothing is left" in daiku("sessions", "changes", session).out
    assert "↶ restored: a.txt" in daiku("sessions", "show", session).out
    again = done.out.strip().splitlines()[-1].partition("--to ")[2]
    back = json.loads(daiku("sessions", "undo", session, "--to", again, "--json").out)
    assert [f["path"] for f in back["files"]] == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "new\n"
    assert "+new" in daiku("sessions", "changes", session).out


def test_nothing_to_undo_an_unknown_session_and_a_foreign_checkpoint_are_told(
    daiku: Daiku, session: str
) -> None:
    assert daiku("sessions", "undo", "ses_no").code == 2
    assert daiku("sessions", "undo", session, "--to", "checkpoint_no").code == 2
    assert daiku("sessions", "undo", session).code == 0
    nothing = daiku("sessions", "undo", session)
    assert nothing.code == 2
    assert "nothing to undo" in nothing.err


def test_an_undone_session_replays_to_the_same_events(daiku: Daiku, session: str) -> None:
    daiku("sessions", "undo", session)
    assert json.loads(daiku("sessions", "replay", session, "--json").out)["difference"] is None


def test_a_deleted_conversation_leaves_no_contents_behind(
    daiku: Daiku, session: str, daiku_home: Path
) -> None:
    kept = daiku_home / "checkpoints"
    assert [p for p in kept.rglob("*") if p.is_file()]
    assert daiku("sessions", "delete", session).code == 0
    assert not [p for p in kept.rglob("*") if p.is_file()]
