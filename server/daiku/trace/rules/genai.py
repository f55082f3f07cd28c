"""Spans named by OpenTelemetry's semantic conventions for generative AI."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.trace.rules.spans import Span

TEXT_LIMIT = 32_768
"""Characters of one text, at most."""
WHOLE_LIMIT = 65_536
"""Characters of all texts of a value, at most; each list or object item counts as ITEM."""
ITEM = 4
"""Characters that an item of a list or object counts as."""
DEPTH = 24
"""Levels of nesting, at most."""


def truncate_json(
    value: JsonValue, text_limit: int = TEXT_LIMIT, whole_limit: int = WHOLE_LIMIT
) -> JsonValue:
    """Return `value` with long texts, lists, and objects truncated and marked: `[… 120 characters cut]`."""
    return _Truncation(text_limit, whole_limit).value(value, 0)


class _Truncation:
    """One truncation pass over a value; the remaining room shrinks."""

    __slots__ = ("_remaining", "_text_limit")

    def __init__(self, text_limit: int, whole_limit: int) -> None:
        self._text_limit = text_limit
        self._remaining = whole_limit

    def value(self, value: JsonValue, depth: int) -> JsonValue:
        match value:
            case str():
                return self._text(value)
            case list():
                return self._list(value, depth)
            case dict():
                return self._object(value, depth)
            case _:
                return value

    def _text(self, text: str) -> str:
        room = max(0, min(self._text_limit, self._remaining))
        self._remaining -= min(len(text), room) + ITEM
        return text if len(text) <= room else f"{text[:room]}[… {len(text) - room} characters cut]"

    def _list(self, items: list[JsonValue], depth: int) -> JsonValue:
        kept: list[JsonValue] = []
        for item in items:
            if self._remaining <= 0 or depth >= DEPTH:
                kept.append(f"[… {len(items) - len(kept)} items cut]")
                break
            self._remaining -= ITEM
            kept.append(self.value(item, depth + 1))
        return kept

    def _object(self, items: dict[str, JsonValue], depth: int) -> JsonValue:
        kept: dict[str, JsonValue] = {}
        for key, item in items.items():
            if self._remaining <= 0 or depth >= DEPTH:
                kept["…"] = f"[… {len(items) - len(kept)} items cut]"
                break
            name = self._text(key)
            kept[name] = self.value(item, depth + 1)
        return kept


Attribute = str | int | float | bool
CONTENT_LIMIT = 16_384
"""Characters of one attribute with content, at most."""

PROVIDERS = {"gemini": "gcp.gemini"}
"""The conventions' names of providers that differ from ours."""


@dataclass(frozen=True, slots=True)
class SpanDescription:
    """A span for export: name, kind (`client`: an outgoing call), attributes, and whether it failed."""

    name: str
    kind: Literal["internal", "client"]
    attributes: tuple[tuple[str, Attribute], ...]
    failed: bool


def describe(span: Span, *, content: bool = False) -> SpanDescription:
    """Return the description of `span` by the conventions; messages and arguments only with `content`."""
    match span.kind:
        case "agent":
            name, kind, own = f"invoke_agent {span.agent}", "internal", _agent_attributes(span)
        case "chat":
            name, kind, own = f"chat {_model_name(span.model)}".rstrip(), "client", _chat_attributes(span)
        case "tool":
            name, kind, own = f"execute_tool {span.tool}", "internal", _tool_attributes(span)
    all_attributes: dict[str, Attribute | None] = {
        **own,
        "gen_ai.agent.name": span.agent,
        "gen_ai.conversation.id": span.session,
        "error.type": span.error or None,
        "daiku.run.id": span.run,
        "daiku.status": span.status,
        **(_content_attributes(span) if content else {}),
    }
    attributes = tuple((key, value) for key, value in all_attributes.items() if value is not None)
    return SpanDescription(name, kind, attributes, span.status == "failed")


def _agent_attributes(span: Span) -> dict[str, Attribute | None]:
    return {"gen_ai.operation.name": "invoke_agent", **_model_attributes(span), **_token_attributes(span)}


def _chat_attributes(span: Span) -> dict[str, Attribute | None]:
    return {
        "gen_ai.operation.name": "chat",
        **_model_attributes(span),
        "gen_ai.response.model": _model_name(span.answered_by) or None,
        **_token_attributes(span),
        "daiku.retries": span.retries or None,
    }


def _tool_attributes(span: Span) -> dict[str, Attribute | None]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": span.tool,
        "gen_ai.tool.call.id": span.call_id,
        "gen_ai.tool.type": "function",
    }


def _model_attributes(span: Span) -> dict[str, Attribute | None]:
    provider = span.model.partition("/")[0] if "/" in span.model else ""
    return {
        "gen_ai.provider.name": PROVIDERS.get(provider, provider) or None,
        "gen_ai.request.model": _model_name(span.model) or None,
    }


def _token_attributes(span: Span) -> dict[str, Attribute | None]:
    usage = span.tokens
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "daiku.cost_usd": usage.cost,
    }


def _model_name(name: str) -> str:
    """Return a model name without its provider: `gpt-5` for `openai/gpt-5`."""
    return name.partition("/")[2] or name


def _content_attributes(span: Span) -> dict[str, Attribute | None]:
    match span.kind:
        case "tool":
            return {
                "gen_ai.tool.call.arguments": _to_json(span.input),
                "gen_ai.tool.call.result": _to_json(span.output),
            }
        case _:
            return {
                "gen_ai.input.messages": _format_messages("user", span.input),
                "gen_ai.output.messages": _format_messages("assistant", span.output),
            }


def _format_messages(role: str, content: JsonValue) -> str | None:
    """Return content as a list of messages in the form of the conventions."""
    if content is None:
        return None
    parts: list[JsonValue] = []
    if isinstance(content, dict):
        calls = content.get("calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                part: JsonObject = {"type": "tool_call", "name": call["tool"], "arguments": call["args"]}
                parts.append(part)
        content = content.get("text", "")
    if content or not parts:
        parts.insert(0, {"type": "text", "content": content})
    return _to_json([{"role": role, "parts": parts}])


def _to_json(value: JsonValue) -> str | None:
    if value is None:
        return None
    return json.dumps(
        truncate_json(value, CONTENT_LIMIT, CONTENT_LIMIT), ensure_ascii=False, separators=(",", ":")
    )
