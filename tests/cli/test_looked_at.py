"""A run on the terminal that a model looks at: after the next start, so that the terminal ends with the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Daiku, call

INSIGHT = "Start the database before the tests."
REFLECTION = {"reasoning": "It failed.", "insights": [INSIGHT], "tags": []}
CURATION = {"operations": [{"type": "ADD", "section": "environment", "content": INSIGHT}]}


@pytest.fixture
def model(script: Callable[..., str]) -> str:
    return script({"calls": [call("shell/run", command="false")]}, {"text": "It fails."})


@pytest.fixture
def looks(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What the model says that looks at runs."""

    def write(*lines: dict[str, Any]) -> None:
        (workspace / "look.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for agent in ("REFLECTOR", "CURATOR"):
            monkeypatch.setenv(f"DAIKU_AGENTS__{agent}__MODEL", "scripted/look.jsonl")

    return write


def answers() -> tuple[dict[str, Any], ...]:
    return (
        {"agent": "you look back", "text": json.dumps(REFLECTION)},
        {"agent": "you keep the playbook", "text": json.dumps(CURATION)},
    )


def run(daiku: Daiku, model: str, *more: str) -> Any:
    return daiku("run", "--model", model, "--approve", "all", *more, "run the tests")


def next_start(daiku: Daiku, script: Callable[..., str]) -> Any:
    """Run something else, long enough for a model to look at the run before."""
    model = script({"text": "Done.", "delay_ms": 1500})
    return daiku("run", "--model", model, "--json", "hello")


def test_what_a_model_saw_of_a_run_waits_after_the_next_start(
    daiku: Daiku, script: Callable[..., str], model: str, looks: Callable[..., None]
) -> None:
    looks(*answers())
    assert run(daiku, model).code == 0
    assert json.loads(daiku("playbook", "deltas", "--json").out) == []
    assert next_start(daiku, script).chunks()[-1]["type"] == "run_finished"
    (waiting,) = json.loads(daiku("playbook", "deltas", "--json").out)
    assert (waiting["content"], waiting["origin"]) == (INSIGHT, "model")


def test_what_a_look_cost_stands_in_the_session_by_its_name(
    daiku: Daiku,
    script: Callable[..., str],
    model: str,
    looks: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of a script no cost is told.
    monkeypatch.setattr("daiku.fronts.cli.display.show._is_scripted", lambda _model: False)
    used = {"model": "openai/gpt", "promptTokens": 1500, "completionTokens": 20, "cost": 0.25}
    looks(*({**line, "usage": used} for line in answers()))
    run(daiku, model)
    next_start(daiku, script)
    session = next(s for s in json.loads(daiku("sessions", "list", "--json").out) if "tests" in s["title"])
    shown = daiku("sessions", "show", session["sessionId"]).out
    assert "reflector: completed · 1,500 in · 20 out · $0.2500\n" in shown
    assert "curator: completed · 1,500 in" in shown
    exported = daiku("sessions", "export", session["sessionId"]).out
    assert exported.count("> ") == exported.count("## ") == 1


@pytest.mark.parametrize("command", ["run", "chat"])
def test_the_terminal_ends_with_the_answer_whatever_a_model_that_looks_does(
    daiku: Daiku, model: str, looks: Callable[..., None], command: str
) -> None:
    looks({"text": "too late, much too late", "delay_ms": 600_000})
    before = time.monotonic()
    for _ in range(2):  # the second process looks at the run of the first
        if command == "run":
            done = run(daiku, model)
        else:
            done = daiku("chat", "--model", model, "--approve", "all", stdin=b"run the tests\n")
        assert done.code == 0, done.err
    assert time.monotonic() - before < 20


def test_a_script_is_not_asked_about_runs_unless_it_is_named(daiku: Daiku, model: str) -> None:
    done = run(daiku, model)
    assert "learns lessons only by rules" not in done.err
    assert json.loads(daiku("playbook", "deltas", "--json").out) == []
