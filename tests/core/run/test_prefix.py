"""The place where two requests first differ is named."""

from __future__ import annotations

from dataclasses import replace

from daiku.core.run.prefix import first_divergence
from daiku.domain.messages import AssistantMessage, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolSpec
from daiku.texts.text import Text

READ, WRITE = (
    ToolSpec(name=name, description="", parameters={}, effect="read")
    for name in ("files/read", "files/write")
)
ONE = ModelRequest(
    model="m",
    system="You are.",
    messages=(UserMessage(text="go"), AssistantMessage(text=Text("I look."))),
    tools=(READ,),
)


def test_a_request_that_goes_on_differs_nowhere() -> None:
    assert first_divergence(ONE, ONE) == ""
    result = ToolMessage(call_id="1", tool="files/read", ok=True, text="text")
    assert first_divergence(ONE, replace(ONE, messages=(*ONE.messages, result))) == ""


def test_the_first_place_is_named() -> None:
    changed = (UserMessage(text="go"), AssistantMessage(text=Text("I looked.")))
    assert first_divergence(ONE, replace(ONE, messages=changed)) == "message 2 (assistant)"
    assert first_divergence(ONE, replace(ONE, messages=ONE.messages[:1])) == "message 2 (assistant)"
    assert first_divergence(ONE, replace(ONE, system="You are not.", messages=changed)) == "system"
    assert first_divergence(ONE, replace(ONE, tools=(WRITE,), system="")) == "tool 1 (files/write)"
    assert first_divergence(ONE, replace(ONE, tools=(READ, WRITE))) == "tool 2 (files/write)"
    assert first_divergence(ONE, replace(ONE, tools=())) == "tool 1 (files/read)"
    assert first_divergence(ONE, replace(ONE, model="n", tools=())) == "model"
