"""`daiku report`: what was requested, done, and proved, what is open, and the cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, call

Script = Callable[..., str]
Daiku = Callable[..., Done]


@pytest.fixture
def session(script: Script, daiku: Daiku) -> str:
    steps = [{"name": "Write it", "acceptance": ["test -s made.txt"]}]
    model = script(
        {"calls": [call("files/write", path="made.txt", content="x\n")]},
        {
            "calls": [
                call("shell/run", command="test -s made.txt"),
                call("shell/run", command="test -s gone.txt"),
            ]
        },
        {"calls": [call("plan/propose", goal="More", steps=steps)]},
        {"text": "Done."},
    )
    done = daiku("run", "--model", model, "--approve", "all", "--json", "make it")
    return done.chunks()[0]["session"]


def test_a_report_holds_what_the_record_shows(daiku: Daiku, session: str, workspace: Path) -> None:
    made = json.loads(daiku("report", session, "--format", "json").out)
    assert [(each["prompt"], each["status"] is not None) for each in made["requests"]] == [("make it", True)]
    assert [each["path"] for each in made["files"]] == ["made.txt"]
    assert {each["subject"]: each["ok"] for each in made["proofs"]} == {
        "test -s made.txt": True,
        "test -s gone.txt": False,
    }
    assert [step["name"] for plan in made["plans"] for step in plan["steps"]] == ["Write it"]


def test_a_report_names_the_request_of_a_run_that_another_continues(script: Script, daiku: Daiku) -> None:
    (session,) = {each["session"] for each in daiku("run", "--model", script(), "--json", "make it").chunks()}
    daiku("resume", session, "--model", script({"text": "Done."}))
    made = json.loads(daiku("report", session, "--format", "json").out)
    assert [each["prompt"] for each in made["requests"]] == ["make it", "make it"]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_report_for_people_says_what_is_open(daiku: Daiku, session: str, form: str) -> None:
    done = daiku("report", "--format", form)
    proved, _, still = done.out.partition("Open")
    assert ("`test -s made.txt`: 0" in proved, "`test -s gone.txt`: 1" in still) == (True, True)
    assert "Write it (pending)" in still
    assert done.out == daiku("report", session, "--format", form).out


def test_a_folder_without_sessions_has_no_report(script: Script, daiku: Daiku) -> None:
    script()
    assert daiku("report").code == 2
    assert daiku("report", "sess_00000000").code == 2
