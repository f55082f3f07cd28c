"""A run on the terminal that a model looks at: told after the answer, within a bound, in the person's language."""

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


def test_what_a_model_saw_is_told_after_the_answer_and_waits(
    daiku: Daiku, model: str, looks: Callable[..., None]
) -> None:
    looks(*answers())
    done = run(daiku, model)
    assert done.code == 0, done.err
    assert f"Waits for your review: {INSIGHT}" in done.err
    (waiting,) = json.loads(daiku("playbook", "deltas", "--json").out)
    assert (waiting["content"], waiting["origin"]) == (INSIGHT, "model")


def test_what_a_look_cost_is_told_and_stands_in_the_session_by_its_name(
    daiku: Daiku, model: str, looks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a script no cost is told.
    monkeypatch.setattr("daiku.cli.display.show._scripted", lambda _model: False)
    used = {"model": "openai/gpt", "promptTokens": 1500, "completionTokens": 20, "cost": 0.25}
    looks(*({**line, "usage": used} for line in answers()))
    told = run(daiku, model).err
    assert "Looking at it for lessons: 3,000 in · 40 out · $0.5000" in told
    (session,) = json.loads(daiku("sessions", "list", "--json").out)
    shown = daiku("sessions", "show", session["sessionId"]).out
    assert "reflector: completed · 1,500 in · 20 out · $0.2500\n" in shown
    assert "curator: completed · 1,500 in" in shown
    exported = daiku("sessions", "export", session["sessionId"]).out
    assert exported.count("> ") == exported.count("## ") == 1


def test_what_programs_read_ends_with_the_run_and_the_look_is_kept(
    daiku: Daiku, model: str, looks: Callable[..., None]
) -> None:
    looks(*answers())
    done = run(daiku, model, "--json")
    assert done.chunks()[-1]["type"] == "run_finished"
    assert len(json.loads(daiku("playbook", "deltas", "--json").out)) == 1


@pytest.mark.parametrize(
    ("locale", "words"), [("C.UTF-8", "by rules alone"), ("ja_JP.UTF-8", "規則だけで学習します")]
)
def test_a_model_that_does_not_answer_holds_the_terminal_no_longer_than_the_setting_says(
    daiku: Daiku,
    model: str,
    looks: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    locale: str,
    words: str,
) -> None:
    looks({"text": "too late, much too late", "delay_ms": 600_000})
    monkeypatch.setenv("DAIKU_PLAYBOOK__REFLECTION_SECONDS", "1")
    monkeypatch.setenv("LC_ALL", locale)
    before = time.monotonic()
    done = run(daiku, model)
    assert time.monotonic() - before < 30
    assert done.code == 0
    assert words in done.err
    assert "reflection_seconds" in done.err


def test_a_script_is_not_asked_about_runs_unless_it_is_named(daiku: Daiku, model: str) -> None:
    done = run(daiku, model)
    assert "rules alone" not in done.err
    assert json.loads(daiku("playbook", "deltas", "--json").out) == []
