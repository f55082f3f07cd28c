"""Guardrails of runs: what is blocked before the model, at a call and in an answer; what is warned of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from daiku.app import App
from daiku.domain.errors import GuardrailViolation
from daiku.domain.events import Delta, HandoffEnd, MessageEvent, Notice, ToolResponse
from daiku.domain.runs import ContextItem
from daiku.guard.guardrails.guardrail import Guardrail
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Guard
from daiku.run.runs import Runs
from daiku.team.coding.explorer import EXPLORER
from daiku.team.table import AGENTS
from daiku.texts.text import render
from tests.runs.playing import Watch, make_app, shell

T = TypeVar("T")
MakeRuns = Callable[..., Runs]


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[MakeRuns]:
    """Builds the runs over one project and home, with guardrails and a script for the model."""
    (tmp_path / "project").mkdir()
    apps: list[App] = []

    def make(guards: tuple[Guard, ...], *lines: dict[str, Any], command: str = "allow") -> Runs:
        apps.append(make_app(tmp_path, *lines, command=command))
        runs = apps[-1].runs
        runs.services = replace(runs.services, guardrails=guards)
        return runs

    yield make
    for app in apps:
        await app.aclose()


def events(watch: Watch, kind: type[T]) -> list[T]:
    return [c.event for c in watch.chunks if isinstance(c.event, kind)]


async def test_a_blocked_request_ends_the_run_before_the_model_is_asked(play: MakeRuns) -> None:
    """R1.13, R1.46, R1.82: one error, a failed run, no usage."""
    runs, watch = play((Guardrail(regex_blocks=["forbidden"]),), {"text": "never said"}), Watch()
    result = await runs.run(RunRequest("a forbidden thing"), watch)
    assert (result.status, result.text) == ("failed", "")
    assert result.error is not None
    assert result.error.kind == "guardrail"
    assert "forbidden" in result.error.message
    assert watch.types() == ["run_started", "agent_start", "error", "agent_end", "run_finished"]
    assert result.usage.prompt_tokens == 0


async def test_a_blocked_request_is_in_no_later_request_of_the_conversation(play: MakeRuns) -> None:
    """R1.51: what was blocked stays blocked; the person sees it in their conversation, no model does."""
    runs, watch = play((Guardrail(regex_blocks=["forbidden"]),), {"text": "Fine.", "when": "nice"}), Watch()
    first = await runs.run(RunRequest("a forbidden thing"), watch)
    again = await runs.run(RunRequest("a nice thing?", session=first.session_id), watch)
    assert (again.status, again.text) == ("completed", "Fine.")
    state = runs._cached[first.session_id].state
    assert not any("forbidden" in message.text for message in state.conversation.messages)
    assert (await runs.resume(first.run_id, watch)).status == "failed", "resumed, it repeats its result"


async def test_a_selection_that_comes_along_is_judged_too(play: MakeRuns) -> None:
    runs = play((Guardrail(regex_blocks=["forbidden"]),), {"text": "never"})
    item = ContextItem(kind="text", text="here is what is forbidden")
    result = await runs.run(RunRequest("look at this", context=(item,)), Watch())
    assert (result.status, result.error and result.error.kind) == ("failed", "guardrail")


async def test_a_warning_is_a_notice_and_the_run_goes_on(play: MakeRuns) -> None:
    """C1.7, R1.50: warn is shown, and nothing else changes."""
    warns = Guardrail(custom_funcs=[lambda data: {"action": "warn", "reason": f"seen {len(data)}"}])
    runs, watch = play((warns,), {"text": "Done."}), Watch()
    result = await runs.run(RunRequest("four"), watch)
    assert (result.status, result.text) == ("completed", "Done.")
    said = [render(each.text, "ja") for each in events(watch, Notice)]
    assert said == ["ガードレールの警告: seen 4", "ガードレールの警告: seen 5"]


async def test_nothing_of_an_answer_is_shown_that_a_guardrail_blocks(play: MakeRuns) -> None:
    """R1.47, R1.82: an error, a failed run with an empty text, and no delta was shown before."""
    guard = Guardrail(regex_blocks=["pass\\s*word"])
    runs, watch = play((guard,), {"text": "well, the pass word is 1234", "thinking": "hm"}), Watch()
    result = await runs.run(RunRequest("tell me"), watch)
    assert (result.status, result.text) == ("failed", "")
    assert result.error is not None
    assert result.error.kind == "guardrail"
    assert not events(watch, Delta)
    assert not events(watch, MessageEvent)
    assert watch.types() == ["run_started", "agent_start", "usage", "error", "agent_end", "run_finished"]
    assert result.usage.prompt_tokens > 0, "what the reply cost is counted all the same"


async def test_an_answer_that_passes_is_shown_in_its_pieces(play: MakeRuns) -> None:
    runs, watch = play((Guardrail(regex_blocks=["password"]),), {"text": "all of it is fine"}), Watch()
    result = await runs.run(RunRequest("tell me"), watch)
    assert result.text == "all of it is fine"
    assert len(events(watch, Delta)) > 1
    assert "".join(each.text for each in events(watch, Delta)) == result.text


async def test_a_guardrail_of_inputs_alone_holds_nothing_back(play: MakeRuns) -> None:
    assert not Guardrail(input_schema=str).judges_output
    assert Guardrail(output_schema=str).judges_output
    assert not Guardrail().judges_output


async def test_a_blocked_call_is_answered_before_the_tool_runs(play: MakeRuns, tmp_path: Path) -> None:
    """R1.51: denied at once, also before a person would be asked."""
    guard = Guardrail(regex_blocks=["touch made"])
    for command in ("allow", "ask"):
        runs = play(
            (guard,),
            {"calls": [shell("touch made")]},
            {"text": "I could not.", "when": "guardrail"},
            command=command,
        )
        watch = Watch()
        result = await runs.run(RunRequest("go"), watch)
        assert (result.status, result.text) == ("completed", "I could not.")
        (answer,) = events(watch, ToolResponse)
        assert (answer.ok, answer.outcome) == (False, "denied")
        assert "approval_asked" not in watch.types()
        assert not (tmp_path / "project/made").exists()


async def test_the_words_beside_a_call_are_judged_as_well(play: MakeRuns) -> None:
    guard = Guardrail(regex_blocks=["secret plan"])
    runs, watch = (
        play((guard,), {"text": "my secret plan:", "calls": [shell("true")]}, {"text": "Done."}),
        Watch(),
    )
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.error and result.error.kind) == ("failed", "guardrail")
    assert "tool_call" not in watch.types()


async def test_a_nested_run_whose_answer_is_blocked_may_answer_again(play: MakeRuns) -> None:
    guard = Guardrail(regex_blocks=["password"])
    hand = {"tool": "agent/handoff", "args": {"agent": "explorer", "request": "look"}}
    runs, watch = (
        play(
            (guard,),
            {"calls": [hand], "when": "go"},
            {"text": "the password is 1", "when": "look"},
            {"text": "nothing to see", "when": "blocked your last answer"},
            {"text": "It says: nothing.", "when": "nothing to see"},
        ),
        Watch(),
    )
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.text) == ("completed", "It says: nothing.")
    assert not any("password" in each.text for each in events(watch, Delta))


async def test_a_nested_run_that_is_blocked_again_and_again_fails_and_its_parent_goes_on(
    play: MakeRuns,
) -> None:
    guard = Guardrail(regex_blocks=["password"])
    hand = {"tool": "agent/handoff", "args": {"agent": "explorer", "request": "look"}}
    stubborn = ({"text": "the password is 1", "when": when} for when in ("look", "blocked your last"))
    runs = play(
        (guard,), {"calls": [hand], "when": "go"}, *stubborn, {"text": "No luck.", "when": "blocked this"}
    )
    watch = Watch()
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.text) == ("completed", "No luck.")
    back = next(each for each in events(watch, HandoffEnd))
    assert (back.status, back.error and back.error.kind) == ("failed", "guardrail")


async def test_an_agents_own_guardrails_judge_what_it_is_handed(
    play: MakeRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the run judge too: neither takes the other's place."""
    picky = replace(EXPLORER, guardrails=(Guardrail(regex_blocks=["attic"]),))
    monkeypatch.setattr("daiku.team.table.AGENTS", {**AGENTS, "explorer": picky})
    hand = {"tool": "agent/handoff", "args": {"agent": "explorer", "request": "look in the attic"}}
    runs = play((Guardrail(regex_blocks=["cellar"]),), {"calls": [hand]}, {"text": "Not there."})
    watch = Watch()
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.text) == ("completed", "Not there.")
    back = next(each for each in events(watch, HandoffEnd))
    assert (back.status, back.error and back.error.kind) == ("failed", "guardrail")
    assert watch.types().count("usage") == 2, "the explorer's model was not asked"


async def test_what_is_said_meanwhile_and_blocked_does_not_reach_the_run(play: MakeRuns) -> None:
    runs, watch = (
        play((Guardrail(regex_blocks=["forbidden"]),), {"calls": [shell("sleep 0.3")]}, {"text": "Done."}),
        Watch(),
    )
    task = asyncio.create_task(runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    with pytest.raises(GuardrailViolation):
        await runs.steer(called.run, "now the forbidden thing")
    await runs.steer(called.run, "now the nice thing")
    assert (await task).status == "completed"
    assert [each.text for each in events(watch, MessageEvent) if each.role == "user"] == [
        "now the nice thing"
    ]


async def test_a_resumed_run_is_not_judged_by_its_request_again(play: MakeRuns) -> None:
    seen: list[str] = []
    guard = Guardrail(custom_funcs=[seen.append])
    runs, watch = play((guard,), {"calls": [shell("sleep 0.3")]}, {"text": "Done."}), Watch()
    task = asyncio.create_task(runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    paused = asyncio.create_task(runs.pause(called.run))
    await task
    await paused
    result = await runs.resume(called.run, watch, "all")
    assert (result.status, result.text) == ("completed", "Done.")
    assert seen.count("go") == 1
    assert seen.count("Done.") == 1


async def test_a_blocked_run_is_replayed_from_its_journal(play: MakeRuns) -> None:
    guard = Guardrail(regex_blocks=["password"])
    runs = play((guard,), {"calls": [shell("true")]}, {"text": "the password is 2"})
    result = await runs.run(RunRequest("go"), Watch())
    assert result.status == "failed"
    assert (await replay(runs.services.journal.chunks(result.session_id))).difference is None
