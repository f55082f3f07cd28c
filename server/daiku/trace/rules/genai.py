"""Spans in the words of OpenTelemetry's conventions for generative AI: names and attributes."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.trace.rules.bounded import bounded
from daiku.trace.rules.spans import Span

Attribute = str | int | float | bool
CONTENT_LIMIT = 16_384
"""Characters of one attribute that holds content."""

PROVIDERS = {"gemini": "gcp.gemini"}
"""How the conventions call a provider, where it is not by our name."""


@dataclass(frozen=True, slots=True)
class Described:
    """A span as it is exported: its name, whether it calls out (`client`), its attributes, and whether it failed."""

    name: str
    kind: Literal["internal", "client"]
    attributes: tuple[tuple[str, Attribute], ...]
    failed: bool


def describe(span: Span, *, content: bool = False) -> Described:
    """`span` in the words of the conventions. What was said and done is left out unless `content` is wished."""
    match span.kind:
        case "agent":
            name, kind, own = f"invoke_agent {span.agent}", "internal", _agent(span)
        case "chat":
            name, kind, own = f"chat {_model(span.model)}".rstrip(), "client", _chat(span)
        case "tool":
            name, kind, own = f"execute_tool {span.tool}", "internal", _tool(span)
    found: dict[str, Attribute | None] = {
        **own,
        "gen_ai.agent.name": span.agent,
        "gen_ai.conversation.id": span.session,
        "error.type": span.error or None,
        "daiku.run.id": span.run,
        "daiku.status": span.status,
        **(_content(span) if content else {}),
    }
    given = tuple((key, value) for key, value in found.items() if value is not None)
    return Described(name, kind, given, span.status == "failed")


def _agent(span: Span) -> dict[str, Attribute | None]:
    return {"gen_ai.operation.name": "invoke_agent", **_of_model(span), **_tokens(span)}


def _chat(span: Span) -> dict[str, Attribute | None]:
    return {
        "gen_ai.operation.name": "chat",
        **_of_model(span),
        "gen_ai.response.model": _model(span.answered_by) or None,
        **_tokens(span),
        "daiku.retries": span.retries or None,
    }


def _tool(span: Span) -> dict[str, Attribute | None]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": span.tool,
        "gen_ai.tool.call.id": span.call_id,
        "gen_ai.tool.type": "function",
    }


def _of_model(span: Span) -> dict[str, Attribute | None]:
    provider = span.model.partition("/")[0] if "/" in span.model else ""
    return {
        "gen_ai.provider.name": PROVIDERS.get(provider, provider) or None,
        "gen_ai.request.model": _model(span.model) or None,
    }


def _tokens(span: Span) -> dict[str, Attribute | None]:
    used = span.tokens
    if used is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": used.prompt_tokens,
        "gen_ai.usage.output_tokens": used.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": used.cached_tokens or None,
        "daiku.cost_usd": used.cost,
    }


def _model(name: str) -> str:
    """`gpt-5` of `openai/gpt-5`: the provider stands for itself."""
    return name.partition("/")[2] or name


def _content(span: Span) -> dict[str, Attribute | None]:
    match span.kind:
        case "tool":
            return {
                "gen_ai.tool.call.arguments": _json(span.asked),
                "gen_ai.tool.call.result": _json(span.came),
            }
        case _:
            return {
                "gen_ai.input.messages": _messages("user", span.asked),
                "gen_ai.output.messages": _messages("assistant", span.came),
            }


def _messages(role: str, said: JsonValue) -> str | None:
    """What was said, in the conventions' form of a list of messages."""
    if said is None:
        return None
    parts: list[JsonValue] = []
    if isinstance(said, dict):
        calls = said.get("calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                part: JsonObject = {"type": "tool_call", "name": call["tool"], "arguments": call["args"]}
                parts.append(part)
        said = said.get("text", "")
    if said or not parts:
        parts.insert(0, {"type": "text", "content": said})
    return _json([{"role": role, "parts": parts}])


def _json(value: JsonValue) -> str | None:
    if value is None:
        return None
    return json.dumps(bounded(value, CONTENT_LIMIT, CONTENT_LIMIT), ensure_ascii=False, separators=(",", ":"))
