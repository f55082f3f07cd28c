"""`daiku plan`: a goal is planned, and plans are managed; only planning and working ask a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, call

Script = Callable[..., str]
Daiku = Callable[..., Done]
CHECKLIST = """# Greeter

> Greet people

- [ ] Step 1: Write greet
  In greet.py.
  - Check: `test -s greet.py`
- [ ] Step 2: Use it
  - Check: `test -s use.py`
  - Depends on: 1
"""
STEPS = [
    {"name": "Write greet", "acceptance": ["test -s greet.py"]},
    {"name": "Use it", "acceptance": ["test -s use.py"], "depends_on": ["Write greet"]},
]
WORDS = ("list", "show", "edit", "approve", "work", "export", "import", "delete")


@pytest.fixture(autouse=True)
def silent(script: Script) -> None:
    """Any request to the model fails: the script has no reply."""
    script()


def imported(daiku: Daiku, workspace: Path, content: str = CHECKLIST) -> str:
    (workspace / "plan.md").write_text(content, encoding="utf-8")
    done = daiku("plan", "import", "plan.md")
    assert done.code == 0, done.err
    return done.out.strip()


def shown(daiku: Daiku, *name: str) -> dict[str, Any]:
    return json.loads(daiku("plan", "show", *name, "--json").out)


def editor(monkeypatch: pytest.MonkeyPatch, workspace: Path, program: str) -> None:
    """Set an editor that changes the file by a line of sed."""
    path = workspace / "edit.sh"
    path.write_text(f'#!/bin/sh\nsed -i "{program}" "$1"\n', encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(path))


def test_planning_prints_the_id_steps_checks_and_dependencies(script: Script, daiku: Daiku) -> None:
    model = script({"calls": [call("plan/propose", goal="Greet people", steps=STEPS)]}, {"text": "Made."})
    done = daiku("plan", "--model", model, "greet", "people")
    [made] = json.loads(daiku("plan", "list", "--json").out)
    assert made["planId"] in done.err
    for expected in ("Write greet", "test -s use.py", "Depends on: 1", f"daiku plan work {made['planId']}"):
        assert expected in done.err


def test_an_imported_plan_is_listed_shown_and_exported(daiku: Daiku, workspace: Path) -> None:
    made = imported(daiku, workspace)
    assert daiku("plan", "list").out.split() == [made, "draft", "0/2", "Greeter"]
    text = daiku("plan", "show").out
    assert all(part in text for part in (made, "draft", "Use it", "test -s use.py", "Depends on: 1"))
    export = daiku("plan", "export", made).out
    again = imported(daiku, workspace, export)
    names = [step["name"] for step in shown(daiku, again)["steps"]]
    assert (again != made, names) == (True, ["Write greet", "Use it"])


def test_a_plan_is_found_by_its_name_and_the_last_changed_is_the_default(
    daiku: Daiku, workspace: Path
) -> None:
    first = imported(daiku, workspace)
    second = imported(daiku, workspace, CHECKLIST.replace("Greeter", "Other"))
    assert shown(daiku, "greeter")["planId"] == first
    assert shown(daiku)["planId"] == second
    daiku("plan", "approve", first)
    assert shown(daiku)["planId"] == first


def test_approving_ends_the_draft(daiku: Daiku, workspace: Path) -> None:
    made = imported(daiku, workspace)
    assert daiku("plan", "approve", made).out == "Plan approved: Greeter\n"
    assert shown(daiku)["status"] == "approved"


def test_a_deleted_plan_is_gone(daiku: Daiku, workspace: Path) -> None:
    made = imported(daiku, workspace)
    assert daiku("plan", "delete", made).code == 0
    assert daiku("plan", "list", "--json").out == "[]\n"
    for command in ("show", "approve", "export", "delete", "work", "edit"):
        done = daiku("plan", command, made)
        assert (done.code, made in done.err) == (2, True), command


def test_an_edit_keeps_the_ids_of_steps(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = imported(daiku, workspace)
    before = shown(daiku)
    editor(monkeypatch, workspace, "s/use.py/used.py/; s/Step 2: Use it/Step 2: Use greet/")
    assert daiku("plan", "edit", made).code == 0
    after = shown(daiku)
    assert [step["stepId"] for step in after["steps"]] == [step["stepId"] for step in before["steps"]]
    assert after["steps"][1]["dependsOn"] == [before["steps"][0]["stepId"]]
    assert (after["planId"], after["steps"][1]["name"]) == (made, "Use greet")
    assert after["steps"][1]["acceptance"] == after["steps"][1]["ownChecks"] == ["test -s used.py"]


def test_an_edit_that_cannot_be_saved_keeps_the_text(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(daiku, workspace)
    before = shown(daiku)
    editor(monkeypatch, workspace, "s/Depends on: 1/Depends on: 7/")
    done = daiku("plan", "edit")
    assert (done.code, shown(daiku)) == (2, before)
    path = Path(next(word for word in done.err.split() if "daiku-plan-" in word).rstrip("."))
    assert "Depends on: 7" in path.read_text(encoding="utf-8")
    path.unlink()


def test_editing_needs_an_editor(daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(daiku, workspace)
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    done = daiku("plan", "edit")
    assert (done.code, "EDITOR" in done.err) == (2, True)


def test_working_a_plan_asks_the_team(script: Script, daiku: Daiku, workspace: Path) -> None:
    made = imported(daiku, workspace)
    done = daiku("plan", "work", made, "--model", script(), "--approve", "all", "--json")
    assert [c["agent"] for c in done.chunks() if c["type"] == "run_started"][:1] == ["team"]
    assert shown(daiku)["status"] != "draft"


@pytest.mark.parametrize("word", WORDS)
def test_a_goal_that_is_a_command_word_goes_behind_two_dashes(
    script: Script, daiku: Daiku, word: str
) -> None:
    model = script({"calls": [call("plan/propose", goal=word, steps=STEPS)]}, {"text": "Made."})
    done = daiku("plan", "--model", model, "--", word)
    assert word in json.loads(daiku("plan", "list", "--json").out)[0]["goal"], done.err


@pytest.mark.parametrize("word", [*WORDS, "List", "lists", "aprove", "exports"])
def test_a_command_word_after_options_is_no_goal(daiku: Daiku, word: str) -> None:
    done = daiku("plan", "--approve", "all", word)
    assert (done.code, f"daiku plan -- {word}" in done.err) == (2, True)
    assert daiku("plan", "list", "--json").out == "[]\n"


@pytest.mark.parametrize("command", ["show", "edit", "approve", "work", "export", "delete"])
def test_an_unknown_plan_is_named(daiku: Daiku, command: str) -> None:
    done = daiku("plan", command, "plan_00000000")
    assert (done.code, "plan_00000000" in done.err) == (2, True)
    assert "daiku plan list" in done.err


def test_a_folder_lists_its_own_plans_only(daiku: Daiku, workspace: Path, tmp_path: Path) -> None:
    imported(daiku, workspace)
    other = tmp_path / "other"
    other.mkdir()
    assert daiku("plan", "list", "--json", "-C", str(other)).out == "[]\n"
    assert daiku("plan", "show", "-C", str(other)).code == 2
