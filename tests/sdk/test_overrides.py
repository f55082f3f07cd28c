"""Tests of a program replace every model, or forbid to ask a model service."""

from __future__ import annotations

import pytest

from daiku import Agent, LLMRouter, Runner
from daiku.models.families import OVERRIDES
from daiku.testing import FakeLLM, forbid_models, override_model

NAMED = "compatible/some-model"
SETTINGS = {"llm": {"compatible": {"base_url": "http://127.0.0.1:9/v1"}}}


@pytest.fixture(autouse=True)
def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OVERRIDES, "forbidden", False)
    forbid_models()


def call(agent: str) -> dict[str, object]:
    return {"tool": "agent/handoff", "args": {"agent": agent, "request": "Please."}}


MODELS: list[tuple[str | FakeLLM, str | FakeLLM]] = [
    (NAMED, NAMED),
    ("", NAMED),
    (NAMED, ""),
    (FakeLLM(), FakeLLM()),
]


@pytest.mark.parametrize(("first", "second"), MODELS)
async def test_a_model_overrides_those_that_agents_have(first: str | FakeLLM, second: str | FakeLLM) -> None:
    cook = Agent("cook", "You cook.", model=second)
    chief = Agent("chief", "You lead.", model=first, handoffs=[cook])
    fake = FakeLLM(call("cook"), "Soup.", "Here is soup.")
    async with Runner(model="" if first else FakeLLM(), settings=SETTINGS) as runner:
        with override_model(fake):
            result = await runner.run(chief, "Hungry.")
    assert (result.status, result.text) == ("completed", "Here is soup.")
    assert [request.system.count("You cook.") for request in fake.requests] == [0, 1, 0]


async def test_a_model_overrides_the_one_of_a_router() -> None:
    fake = FakeLLM('{"question": "Hungry.", "agents": ["cook"]}', "Soup.")
    cook, host = Agent("cook", "You cook."), Agent("host", "You greet.")
    router = LLMRouter(NAMED, [cook, host])
    async with Runner(router=router, settings=SETTINGS) as runner:
        with override_model(fake):
            result = await runner.run(host, "Hungry.")
    assert result.status == "completed"
    assert len(fake.requests) == 2


def test_the_override_ends_with_its_block() -> None:
    agent = Agent("a", "x", model=NAMED)
    with override_model(FakeLLM("outer")):
        with override_model(FakeLLM("inner")):
            assert agent.run_sync("Hi", settings=SETTINGS).text == "inner"
        assert agent.run_sync("Hi", settings=SETTINGS).text == "outer"
    assert agent.run_sync("Hi", settings=SETTINGS).status == "failed"


@pytest.mark.parametrize(
    ("model", "name"), [(NAMED, NAMED), ("openai/gpt-4o", "openai/gpt-4o"), ("", "llm.model")]
)
def test_a_forbidden_model_service_fails_the_run_and_is_named(model: str, name: str) -> None:
    """Without a key, and before a local server is looked for."""
    done = Agent("a", "x", model=model).run_sync("Hi", settings=SETTINGS)
    assert (done.status, done.text) == ("failed", "")
    assert done.error is not None
    assert name in done.error.message
    assert "override_model" in done.error.hint
    assert Agent("a", "x", model=FakeLLM("Hello.")).run_sync("Hi").text == "Hello."
