"""The command line over a PostgreSQL database: two homes that share nothing else, and servers that are not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Daiku, call
from tests.postgres import NewDatabase

pytestmark = pytest.mark.slow


def test_what_was_begun_in_one_home_is_seen_and_gone_on_with_in_another(
    daiku: Daiku,
    script: Callable[..., str],
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    postgres: NewDatabase,
) -> None:
    monkeypatch.setenv("DAIKU_STORAGE__DATABASE_URL", url := postgres())
    model = script(
        {"calls": [call("files/write", path="a.txt", content="new\n")]},
        {"text": "written"},
        {"text": "again"},
    )
    monkeypatch.setenv("DAIKU_HOME", str(tmp_path / "one"))
    done = daiku("run", "write it", "--model", model, "--approve", "all", "--json")
    assert done.code == 0
    assert (workspace / "a.txt").exists()
    assert not (tmp_path / "one" / "daiku.db").exists()

    monkeypatch.setenv("DAIKU_HOME", str(tmp_path / "two"))
    (session,) = json.loads(daiku("sessions", "list", "--json").out)
    assert session["status"] == "completed"
    shown = daiku("sessions", "show", session["sessionId"])
    assert "written" in shown.out
    undone = daiku("sessions", "undo", session["sessionId"])
    assert undone.code != 0
    assert "Checkpoints are stored on the machine that made the edits" in undone.err
    assert "Traceback" not in undone.err
    assert (workspace / "a.txt").read_text() == "new\n"
    more = daiku("run", "go on", "--session", session["sessionId"], "--model", model, "--json")
    assert more.code == 0
    for home in ("one", "two"):
        for file in (tmp_path / home).rglob("*"):
            assert not file.is_file() or url.encode() not in file.read_bytes()


@pytest.mark.parametrize("command", [("sessions", "list"), ("run", "hello"), ("resume", "run_1")])
def test_a_server_that_is_not_there_is_one_line_and_exit_code_2(
    daiku: Daiku, script: Callable[..., str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DAIKU_LLM__MODEL", script({"text": "x"}))
    monkeypatch.setenv("DAIKU_STORAGE__DATABASE_URL", "postgresql://me:geheim99@127.0.0.1:1/x")
    done = daiku(*command)
    assert done.code == 2
    assert "PostgreSQL at 127.0.0.1:1/x cannot be reached" in done.err
    assert "geheim99" not in done.err
