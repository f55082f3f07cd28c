"""A transport that repairs invalid answers, so that one bad tool or block does not hide the others.

The SDK validates a page of tools, or the result of a call, as a unit. Here each member is checked alone first:
small mistakes are fixed, an unreadable member is reduced to its text, and the rest is unchanged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeAlias, cast

from mcp import types
from mcp.client import Transport
from mcp.client._transport import (
    ReadStream,
    TransportStreams,
)  # the SDK's own names for what a transport yields
from mcp.shared.message import SessionMessage
from pydantic import JsonValue, TypeAdapter, ValidationError

from daiku.domain.base import JsonObject

Item: TypeAlias = "SessionMessage | Exception"
"""What a transport receives: a message, or the error that prevented reading one."""
log = logging.getLogger(__name__)
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


@asynccontextmanager
async def open_lenient_transport(transport: Transport) -> AsyncGenerator[TransportStreams]:
    """Open `transport`, and repair its answers before the SDK validates them."""
    async with transport as (incoming, outgoing):
        yield _RepairedStream(incoming), outgoing


class _RepairedStream:
    """A server's message stream with each message repaired."""

    def __init__(self, inner: ReadStream[Item]) -> None:
        self._inner = inner

    async def receive(self) -> Item:
        return _repair(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return _repair(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


def _repair(item: Item) -> Item:
    if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
        repair_result(cast(JsonObject, item.message.result))
    return item


def repair_result(result: JsonObject) -> None:
    """Repair the tools of a listing, or the content of a call's result, in place."""
    if isinstance(tools := result.get("tools"), list):
        result["tools"] = [fixed for tool in tools if (fixed := _repair_tool(tool))]
    if "content" in result or "structuredContent" in result:
        _repair_call(result)


def _repair_tool(tool: JsonValue) -> JsonObject | None:
    """Return a valid tool; None without a name, because nobody could call it."""
    if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
        log.warning("a tool without a name was left out: %.200s", json.dumps(tool, default=str))
        return None
    schema = tool.get("inputSchema")
    object_schema: JsonObject = {**(schema if isinstance(schema, dict) else {}), "type": "object"}
    # With an output schema the SDK rejects results whose structured part does not match, although the text is usable.
    members = {key: value for key, value in tool.items() if key != "outputSchema"}
    fixed: JsonObject = {**members, "inputSchema": object_schema}
    try:
        types.Tool.model_validate(fixed, by_name=False)
    except ValidationError as error:
        log.warning("the tool %.100s is reduced to its name and arguments: %.500s", name, error)
        description = tool.get("description")
        description_member: JsonObject = {"description": description} if isinstance(description, str) else {}
        return {"name": name, **description_member, "inputSchema": object_schema}
    return fixed


def _repair_call(result: JsonObject) -> None:
    content = result.get("content")
    blocks: list[JsonValue] = [] if content is None else content if isinstance(content, list) else [content]
    result["content"] = [_repair_block(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is None:
        result.pop("structuredContent", None)
    elif not isinstance(structured, dict):
        result["structuredContent"] = {"result": structured}
    if "isError" in result:
        result["isError"] = bool(result["isError"])


def _repair_block(block: JsonValue) -> JsonValue:
    """Return a valid block unchanged, and any other one as text."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    try:
        _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        text = block.get("text") if isinstance(block, dict) else None
        return {"type": "text", "text": text if isinstance(text, str) else json.dumps(block, default=str)}
    return block
