"""What a run taught, as the terminal says it: one line after the answer; nothing in what programs read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from daiku.domain.playbook import Why
from tests.cli.conftest import Daiku, call
from tests.conftest import ROOT

WRONG = {"calls": [call("shell/run", command="make test")]}
RIGHT = {"calls": [call("shell/run", command="make check")]}


@pytest.fixture
def model(script: Callable[..., str], workspace: Path) -> str:
    (workspace / "Makefile").write_text("check:\n\t@echo 4 passed\n")
    return script(WRONG, RIGHT, {"text": "They pass."})


def run(daiku: Daiku, model: str, *more: str) -> Any:
    return daiku("run", "--model", model, "--approve", "all", *more, "run the tests")


def test_what_a_run_taught_is_told_after_its_answer(daiku: Daiku, model: str) -> None:
    """B3.4."""
    done = run(daiku, model)
    assert done.code == 0, done.err
    *_, line, way = done.err.splitlines()
    assert line.strip().startswith("Waits for your review: ")
    assert "make check" in line
    assert way.strip() == "`daiku playbook review` asks you about it."
    assert "Learned" not in done.err
    waiting = json.loads(daiku("playbook", "deltas", "--json").out)
    assert len(waiting) == 1


def test_what_holds_at_once_is_told_as_learnt(
    daiku: Daiku, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits, so nothing is said of a review."""
    monkeypatch.setenv("DAIKU_PLAYBOOK__LEARN", "auto")
    monkeypatch.setenv("DAIKU_APPROVALS__COMMANDS_ALLOW", '["make check", "make test"]')
    told = run(daiku, model).err
    (line,) = [line for line in told.splitlines() if "Learned: " in line]
    assert "make check" in line
    assert "review" not in told


def test_a_conversation_that_is_shown_again_says_it_too(daiku: Daiku, model: str) -> None:
    run(daiku, model)
    (session,) = json.loads(daiku("sessions", "list", "--json").out)
    assert "Waits for your review: " in daiku("sessions", "show", session["sessionId"]).out


def test_it_is_told_in_japanese(daiku: Daiku, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    told = run(daiku, model).err
    assert "確認待ちの教訓: " in told
    assert told.count("`daiku playbook review` で採否を決められます。") == 1


def test_what_programs_read_ends_with_the_run(daiku: Daiku, model: str) -> None:
    done = run(daiku, model, "--json")
    assert done.chunks()[-1]["type"] == "run_finished"
    assert "Learned" not in done.err


@pytest.mark.parametrize("why", get_args(Why))
def test_every_reason_of_an_outcome_has_words_in_the_terminal_and_in_the_editor(why: str) -> None:
    for language in ("en", "ja"):
        known = json.loads((ROOT / f"server/daiku/texts/{language}.json").read_text("utf-8"))
        assert f"terminal.playbook.because.{why}" in known
    assert f"  {why}: t(" in (ROOT / "extension/src/trees/playbookWords.ts").read_text("utf-8")
