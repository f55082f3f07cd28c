"""Words for the tests of providers: ask one, hear what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from pydantic import SecretStr

from daiku.domain.config import ProviderSettings
from daiku.domain.messages import (
    AssistantMessage,
    Image,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.model import open_provider
from daiku.models.provider import Provider, ProviderDeps
from daiku.models.table import PROVIDERS
from daiku.texts.text import Text
from tests.llm.server import ModelServer

KEY = "sk-test-0123456789abcdef"
PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")
READ = ToolSpec(
    name="files/read",
    description="Read a file",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effect="read",
)


def settings(server: ModelServer, **more: Any) -> ProviderSettings:
    return ProviderSettings(base_url=server.url, api_key=SecretStr(KEY), **more)


def opened(provider: str, settings: ProviderSettings, **deps: Any) -> Provider:
    return open_provider(PROVIDERS[provider], settings, ProviderDeps(**deps))


def request(*messages: Message, model: str = "m", **more: Any) -> ModelRequest:
    more.setdefault("system", "")
    return ModelRequest(model=model, messages=messages or (user(),), **more)


async def hear(provider: Provider, *messages: Message, **more: Any) -> list[ModelEvent]:
    return [event async for event in provider.stream(request(*messages, **more))]


async def reply(provider: Provider, *messages: Message, **more: Any) -> Reply:
    return closing(await hear(provider, *messages, **more))


def closing(events: list[ModelEvent]) -> Reply:
    assert isinstance(events[-1], Reply)
    assert not any(isinstance(event, Reply) for event in events[:-1])
    return events[-1]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thinking_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ThinkingDelta))


def user(text: str = "Hello", *images: Image) -> UserMessage:
    return UserMessage(text=text, images=images)


def said(text: str = "", *calls: ToolCall, **more: Any) -> AssistantMessage:
    return AssistantMessage(text=Text(text), calls=calls, **more)


def call(call_id: str = "c1", tool: str = "files/read", **args: Any) -> ToolCall:
    return ToolCall(id=call_id, tool=tool, args=args)


def result(call_id: str = "c1", text: str = "x = 1", *images: Image, ok: bool = True) -> ToolMessage:
    return ToolMessage(call_id=call_id, tool="files/read", ok=ok, text=text, images=images)


async def leave_after_first(
    stream: AsyncIterator[ModelEvent], then: Callable[[], Any] = lambda: None
) -> None:
    """Cancel who listens once the first piece is there."""
    heard = asyncio.Event()

    async def listen() -> None:
        async for _ in stream:
            heard.set()

    task = asyncio.create_task(listen())
    await asyncio.wait_for(heard.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    then()
