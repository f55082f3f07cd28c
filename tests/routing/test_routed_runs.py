"""Routers in runs: one agent gets the run, several are handed the request and their answers joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.config import SandboxSettings
from daiku.domain.errors import UsageError
from daiku.domain.events import HandoffStart, Notice
from daiku.guard.guardrails.guardrail import Guardrail
from daiku.library.runner import Runner
from daiku.models.table import LLMSettings
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings import load
from daiku.settings.config import Config, GuardrailSettings, RouterSettings
from daiku.team.agent import Agent
from daiku.team.routing.model import LLMRouter
from daiku.team.routing.rule_router import RuleRouter
from daiku.testing import FakeLLM
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch


def make(folder: Path, *lines: dict[str, Any], router: RouterSettings) -> App:
    (folder / "project").mkdir(exist_ok=True)
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"), sandbox=SandboxSettings(mode="off"), router=router
    )
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


async def test_the_settings_rules_give_a_request_to_an_agent(tmp_path: Path) -> None:
    """R1.8, R1.11, R1.58; PROTOCOL 2 `router.rules`: the agent's own run, with a word to the person."""
    rules = RouterSettings(rules=(("where is", ("explorer",)),))
    app, watch = make(tmp_path, {"text": "In a.py."}, {"text": "Hello."}, router=rules), Watch()
    result = await app.runs.run(RunRequest("where is it"), watch)
    assert (result.status, result.text) == ("completed", "In a.py.")
    assert {c.agent for c in watch.chunks} == {"explorer"}
    assert any("explorer" in c.event.text for c in watch.chunks if isinstance(c.event, Notice))
    plain = Watch()
    again = await app.runs.run(RunRequest("hello", session=result.session_id), plain)
    assert again.text == "Hello."
    assert {c.agent for c in plain.chunks} == {"coordinator"}
    named = Watch()
    await app.runs.run(RunRequest("where is it", agent="reporter"), named)
    assert {c.agent for c in named.chunks} == {"reporter"}, "whom a front names is not asked about"
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_several_agents_are_handed_the_request_and_the_coordinator_joins(tmp_path: Path) -> None:
    """R1.58: in the order of the rule."""
    rules = RouterSettings(rules=(("report", ("explorer", "nobody", "coordinator", "reporter")),))
    lines = (
        {"text": "Found: A.", "when": "a report"},
        {"text": "A and more.", "when": "has no replies left"},
    )
    app, watch = make(tmp_path, *lines, router=rules), Watch()
    result = await app.runs.run(RunRequest("a report", approvals="none"), watch)
    begun = [c.event.to for c in watch.chunks if isinstance(c.event, HandoffStart)]
    assert begun == ["explorer", "reporter"]
    assert watch.types()[0] == "run_started"
    assert (result.status, result.text) == ("completed", "A and more.")
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_light_model_of_the_settings_is_asked_first(tmp_path: Path) -> None:
    """R1.53, C1.13; PROTOCOL 2 `router.model`: what it used is the run's."""
    light = tmp_path / "light.jsonl"
    used = {"promptTokens": 70, "completionTokens": 7}
    light.write_text(json.dumps({"text": '{"question": "x", "agents": ["explorer"]}', "usage": used}))
    rules = RouterSettings(model=f"scripted/{light}", rules=((".", ("runner",)),))
    main = {"text": "In a.py.", "usage": {"promptTokens": 100, "completionTokens": 10}}
    app, watch = make(tmp_path, main, router=rules), Watch()
    result = await app.runs.run(RunRequest("where is it"), watch)
    assert (result.status, result.text) == ("completed", "In a.py.")
    assert {c.agent for c in watch.chunks} == {"explorer"}
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (170, 17)
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_blocked_request_is_not_routed(tmp_path: Path) -> None:
    model = FakeLLM('{"agents": []}')
    agent = Agent("a", "Answer.", guardrails=[Guardrail(regex_blocks=["forbidden"])])
    async with Runner(model=FakeLLM(), router=LLMRouter(model)) as runner:
        result = await runner.run(agent, "a forbidden thing")
    assert (result.status, result.error and result.error.kind) == ("failed", "guardrail")
    assert not model.requests


async def test_a_runner_has_a_router() -> None:
    """PROTOCOL 6: `Runner(router=)`; agents that it brings need no other mention."""
    poet = Agent("poet", "You write verse.", model=FakeLLM("A verse."))
    front = Agent("front", "You answer.", model=FakeLLM("Plain."))
    async with Runner(router=RuleRouter([("verse", [poet])])) as runner:
        assert (await runner.run(front, "a verse, please")).text == "A verse."
        assert (await runner.run(front, "anything")).text == "Plain."


async def test_a_runners_router_hands_to_several() -> None:
    one, two = (Agent(name, "You answer.", model=FakeLLM(f"{name}!")) for name in ("one", "two"))
    front = Agent("front", "You join.", model=FakeLLM("one! two!"))
    async with Runner(router=RuleRouter([("both", [one, two])])) as runner:
        result = await runner.run(front, "both")
    assert (result.status, result.text) == ("completed", "one! two!")


async def test_the_agent_that_is_chosen_brings_its_own_guardrails() -> None:
    poet = Agent("poet", "Verse.", model=FakeLLM("A verse."), guardrails=[Guardrail(regex_blocks=["rude"])])
    async with Runner(router=RuleRouter([("verse", [poet])])) as runner:
        result = await runner.run(Agent("front", "x", model=FakeLLM()), "a rude verse")
    assert (result.status, result.error and result.error.kind) == ("failed", "guardrail")


def test_a_rule_of_the_settings_that_is_no_regular_expression_is_named(tmp_path: Path) -> None:
    """PROTOCOL 2: exit code 2, as for every wrong setting."""
    overrides: Any = {"router": {"rules": [["(", ["coder"]]]}}
    with pytest.raises(UsageError, match=r"router\.rules"):
        load(workspace=None, trusted=True, environ={"HOME": str(tmp_path)}, overrides=overrides)
    wrong: Any = {"guardrails": {"regex_blocks": ["("]}}
    with pytest.raises(UsageError, match="regex_blocks"):
        load(workspace=None, trusted=True, environ={"HOME": str(tmp_path)}, overrides=wrong)
    assert GuardrailSettings().references
