from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMAuthError, LLMRequestError, LLMTimeoutError
from daiku.models.provider import Provider
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import Text
from tests.llm.talk import (
    PICTURE,
    READ,
    call,
    closing,
    hear,
    leave_after_first,
    opened,
    reply,
    request,
    result,
    said,
    text_of,
    thinking_of,
    user,
)


class Editor:
    """An editor that lends models: plays `parts`, then answers with all of them."""

    def __init__(self, *parts: JsonObject, error: Exception | None = None, hang: bool = False) -> None:
        self.parts, self.error, self.hang = parts, error, hang
        self.asked: list[dict[str, Any]] = []
        self.cancelled = asyncio.Event()
        self.models: list[JsonObject] = [
            {"id": "copilot/blind", "tools": False},
            {
                "id": "copilot/gpt-6-sol",
                "name": "GPT-6 Sol",
                "vendor": "copilot",
                "context": 128_000,
                "images": True,
            },
        ]

    async def list_models(self) -> tuple[JsonObject, ...]:
        return tuple(self.models)

    async def request(
        self,
        model: str,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        part: Callable[[JsonObject], None] | None = None,
    ) -> JsonObject:
        self.asked.append({"model": model, "messages": list(messages), "tools": list(tools)})
        assert part is not None
        for piece in self.parts:
            await asyncio.sleep(0)
            part(piece)
        if self.error is not None:
            raise self.error
        if self.hang:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        return {"parts": list(self.parts), "promptTokens": 0, "completionTokens": 0}


def lent(editor: Editor, **more: Any) -> Provider:
    bridge: LanguageModelBridge = editor
    return opened("editor", ProviderSettings(**more), bridge=bridge)


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


async def test_text_thinking_and_calls_arrive_as_they_come_and_usage_is_estimated() -> None:
    editor = Editor(
        {"type": "thinking", "text": "考える"},
        text("読み"),
        text("ます"),
        {"type": "call", "callId": "v1", "name": "files__read", "input": {"path": "日本.py"}},
        {"type": "call", "callId": "v2", "name": "files__read", "input": {"path": "b.py"}},
    )
    heard = await hear(lent(editor), model="copilot/gpt-6-sol", tools=(READ,))
    assert (text_of(heard), thinking_of(heard)) == ("読みます", "考える")
    last = closing(heard)
    assert [(c.id, c.tool, c.args) for c in last.message.calls] == [
        ("v1", "files/read", {"path": "日本.py"}),
        ("v2", "files/read", {"path": "b.py"}),
    ]
    assert last.finish == "tool_calls"
    assert last.usage.prompt_tokens > 0
    assert last.usage.completion_tokens > 5


async def test_the_conversation_is_told_in_the_editors_words() -> None:
    editor = Editor(text("ok"))
    messages = (
        user("a", PICTURE),
        said("b", call("c1", path="x"), call("c2")),
        result("c1", "1"),
        result("c2", "2", ok=False),
    )
    await reply(lent(editor), *messages, model="m", system="Be brief.", tools=(READ,))
    asked = editor.asked[0]
    assert asked["messages"] == [
        {"role": "system", "parts": [text("Be brief.")]},
        {
            "role": "user",
            "parts": [{"type": "image", "mediaType": "image/png", "data": PICTURE.data}, text("a")],
        },
        {
            "role": "assistant",
            "parts": [
                text("b"),
                {"type": "call", "callId": "c1", "name": "files__read", "input": {"path": "x"}},
                {"type": "call", "callId": "c2", "name": "files__read", "input": {}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"type": "result", "callId": "c1", "text": "1"},
                {"type": "result", "callId": "c2", "text": "Failed: 2"},
            ],
        },
    ]
    assert asked["tools"] == [
        {"name": "files__read", "description": "Read a file", "inputSchema": READ.parameters}
    ]


async def test_without_a_name_the_first_model_with_tools_is_asked() -> None:
    editor = Editor(text("ok"))
    last = await reply(lent(editor), model="")
    assert editor.asked[0]["model"] == last.usage.model == "copilot/gpt-6-sol"
    editor.models = []
    with pytest.raises(LLMRequestError, match="No model is available yet"):
        await reply(lent(editor), model="")


async def test_an_empty_reply_and_a_call_without_a_result_are_fine() -> None:
    editor = Editor()
    assert (await reply(lent(editor), user(), said("", call()), model="m")).message.text == ""
    assert [m["role"] for m in editor.asked[0]["messages"]] == ["user", "assistant", "user"]


async def test_halves_of_surrogates_are_joined_or_replaced() -> None:
    editor = Editor(text("\ud83d"), text("\ude00 \ud800"))
    assert (await reply(lent(editor), user("\ud800"), model="m")).message.text == "😀 \ufffd"
    assert editor.asked[0]["messages"][0]["parts"] == [text("\ufffd")]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LLMAuthError(Failure(kind="auth", message=Text("consent was refused"))), LLMAuthError),
        (RuntimeError("the editor broke"), LLMRequestError),
        (ConnectionResetError("gone"), LLMRequestError),
    ],
)
async def test_errors_of_the_editor_are_errors_of_the_model(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await hear(lent(Editor(text("so"), error=error)), model="m")


async def test_cancelling_cancels_in_the_editor() -> None:
    editor = Editor(text("so"), hang=True)
    await leave_after_first(lent(editor).stream(request(model="m")))
    await asyncio.wait_for(editor.cancelled.wait(), 5)


@pytest.mark.slow
async def test_silence_is_bounded() -> None:
    editor = Editor(text("so"), hang=True)
    with pytest.raises(LLMTimeoutError, match="nothing for 1 s"):
        await hear(lent(editor, idle_seconds=1), model="m")
    assert editor.cancelled.is_set()


async def test_models_are_listed_with_what_the_editor_knows() -> None:
    blind, sol = await lent(Editor()).models()
    assert (blind.tools, sol.tools, sol.images, sol.context) == (False, True, True, 128_000)
    assert sol.trait == "GPT-6 Sol · copilot"
    assert await lent(Editor()).count_tokens(request()) is None
