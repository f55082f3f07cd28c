"""Decoder for replies of the Chat Completions protocol, from OpenAI and compatible services."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    ModelEvent,
    Reply,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from daiku.models.openai.chat_request import PROTOCOL, identify_author
from daiku.models.transport.calls import CallParts, build_calls, merge_fields
from daiku.models.transport.failures import from_body, stream_cut_error
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SseParser, SurrogateReplacer, replace_surrogates
from daiku.models.transport.wire import read_object, to_count
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import Text

_KNOWN_FIELDS = frozenset(
    {
        "role", "name", "content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning",
        "reasoning_details", "index", "channel", "executed_tools", "annotations", "audio", "images", "citations",
        "prefix", "token_ids", "logprobs", "stop_reason", "obfuscation", "usage", "finish_reason",
    }
)  # fmt: skip
"""Message fields that are decoded, or that only describe the output."""
_KNOWN_CALL_FIELDS = frozenset(("id", "type", "index", "function"))


class ChatDecoder:
    """Decoder of one reply of the Chat Completions protocol, streamed or complete."""

    def __init__(self, service: Service, names: NameMap, model: str = "") -> None:
        self._service = service
        self._names = names
        self._model = model
        self._author = identify_author(service.address, model)
        self._cutter = SseParser()
        self._replacer = SurrogateReplacer()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[CallParts] = []
        self._by_index: dict[int, CallParts] = {}
        self._details: list[JsonObject] = []
        self._fields: JsonObject = {}
        self._thinking_field = ""
        self._events: list[ModelEvent] = []
        self._usage: JsonObject = {}
        self._finish = ""
        self._has_refusal = False
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: bytes) -> list[ModelEvent]:
        for event in self._cutter.feed(data):
            self._handle_event(event.name, event.data)
        events, self._events = self._events, []
        return events

    def finish(self) -> Reply:
        document = self._cutter.document
        if document is not None:
            self._read_document(document)
        elif not self._ended:
            for event in self._cutter.flush():
                self._handle_unterminated(event.name, event.data)
            if not self._ended and not self._finish:
                raise stream_cut_error(self._service)
        self._texts.append(self._replacer.flush())
        calls = build_calls(self._calls, self._names)
        thinking = replace_surrogates("".join(self._thoughts))
        message = AssistantMessage(
            text=Text("".join(self._texts)),
            thinking=thinking,
            calls=calls,
            opaque=self._encode_opaque(thinking),
        )
        return Reply(message, read_usage(self._usage, self._model), self._finish_reason(bool(calls)))

    def _encode_opaque(self, thinking: str) -> JsonObject:
        """Return the data that the provider must get back with this reply."""
        stored: JsonObject = {}
        if self._thinking_field and thinking:
            stored["thinking_field"] = self._thinking_field
        if self._details:
            stored["reasoning_details"] = cast("list[JsonValue]", self._details)
        if self._fields:
            stored["fields"] = self._fields
        extras: list[JsonValue] = [call.extra for call in self._calls if call.name]
        if any(extras):
            stored["calls"] = extras
        return {PROTOCOL: {"author": self._author, **stored}} if stored else {}

    def _handle_event(self, name: str, data: bytes) -> None:
        if data == b"[DONE]":
            self._ended = True
            return
        if self._ended:
            return
        chunk = read_object(self._service, data)
        if name == "error":
            raise from_body(self._service, chunk)
        self._handle_chunk(chunk)

    def _handle_unterminated(self, name: str, data: bytes) -> None:
        """Handle an event without its blank line, which may be complete or cut."""
        if data == b"[DONE]" or data.endswith(b"}"):
            try:
                self._handle_event(name, data)
            except ValueError:
                return

    def _read_document(self, document: bytes) -> None:
        """Read the body of a service that answers without streaming."""
        body = read_object(self._service, document)
        self._handle_chunk(body, is_complete=True)
        if not isinstance(body.get("choices"), list):
            raise from_body(self._service, body)

    def _handle_chunk(self, chunk: JsonObject, *, is_complete: bool = False) -> None:
        choices = chunk.get("choices")
        if (chunk.get("error")) or (not isinstance(choices, list) and chunk.get("object") == "error"):
            raise from_body(self._service, chunk)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        elif "x_groq" in chunk:
            groq = chunk["x_groq"]
            usage = groq.get("usage") if isinstance(groq, dict) else None
            self._usage = usage if isinstance(usage, dict) else self._usage
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = model
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    first, second = ("message", "delta") if is_complete else ("delta", "message")
                    self._handle_choice(choice, choice.get(first) or choice.get(second))

    def _handle_choice(self, choice: JsonObject, delta: JsonValue) -> None:
        if isinstance(delta, dict):
            self._handle_delta(delta)
        finish = choice.get("finish_reason")
        if finish:
            if finish == "error":
                raise from_body(self._service, choice)
            self._finish = str(finish)
        usage = choice.get("usage")  # Moonshot puts it here
        if isinstance(usage, dict):
            self._usage = usage

    def _handle_delta(self, delta: JsonObject) -> None:
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str):  # the usual event
            if content:
                self._add_text(content)
            return
        for key in ("reasoning_content", "reasoning"):
            thought = delta.get(key)
            if isinstance(thought, str) and thought:
                self._thinking_field = key
                self._add_thinking(thought)
                break
        if isinstance(content, str):
            if content:
                self._add_text(content)
        elif isinstance(content, list):
            self._handle_parts(content)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._has_refusal = True
            self._add_text(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for index, part in enumerate(calls):
                if isinstance(part, dict):
                    self._handle_call(part, index if len(calls) > 1 else None)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._handle_call({"index": 0, "function": legacy}, None)
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._store_details(details)
        merge_fields(self._fields, delta, _KNOWN_FIELDS)

    def _handle_parts(self, parts: list[JsonValue]) -> None:
        """Handle content in parts, as Mistral sends it: text, and thinking that has parts of its own."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            text = part.get("text")
            thinking = part.get("thinking")
            if isinstance(text, str) and text:
                self._add_text(text)
            if thinking:
                self._thinking_field = "content"
            if isinstance(thinking, str):
                self._add_thinking(thinking)
            elif isinstance(thinking, list):
                for inner in thinking:
                    thought = inner.get("text") if isinstance(inner, dict) else None
                    if isinstance(thought, str) and thought:
                        self._add_thinking(thought)

    def _add_text(self, text: str) -> None:
        text = self._replacer.feed(text)
        if text:
            self._texts.append(text)
            self._events.append(TextDelta(text))

    def _add_thinking(self, text: str) -> None:
        self._thoughts.append(text)
        self._events.append(ThinkingDelta(replace_surrogates(text)))

    def _handle_call(self, part: JsonObject, position: int | None) -> None:
        """Add a piece to its call, found by index, by id, by position, or else the last one."""
        function = part.get("function")
        function = function if isinstance(function, dict) else {}
        call_id = part.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        index = part.get("index")
        if not isinstance(index, int):
            index = position
        call = self._find_call(index, call_id, name)
        if call_id and not call.id:
            call.id = call_id
        if name:
            call.add_name(name)
        call.add_arguments(function.get("arguments"))
        merge_fields(call.extra, part, _KNOWN_CALL_FIELDS)

    def _find_call(self, index: int | None, call_id: str, name: str) -> CallParts:
        if index is not None:
            call = self._by_index.get(index)
            # Some servers number every call 0; a different id then shows that it is another call.
            if call is None or (call_id and call.id and call.id != call_id):
                call = self._by_index[index] = self._add_call()
            return call
        if not self._calls:
            return self._add_call()
        last = self._calls[-1]
        if call_id:
            return last if last.id == call_id else self._add_call()
        return self._add_call() if name and (last.pieces or last.value is not None) else last

    def _add_call(self) -> CallParts:
        self._calls.append(CallParts())
        return self._calls[-1]

    def _store_details(self, details: list[JsonValue]) -> None:
        """Store OpenRouter's structured thoughts, with their pieces joined, to send them back."""
        for detail in details:
            if not isinstance(detail, dict):
                continue
            last = self._details[-1] if self._details else {}
            is_same = bool(last) and all(last.get(k) == detail.get(k) for k in ("type", "index"))
            if not is_same:
                self._details.append(dict(detail))
                continue
            for key, value in detail.items():
                old = last.get(key)
                if key in ("text", "summary", "data") and isinstance(value, str) and isinstance(old, str):
                    last[key] = old + value
                elif value is not None:
                    last[key] = value

    def _finish_reason(self, calls: bool) -> FinishReason:
        match self._finish:
            case "length" | "max_tokens" | "model_length":
                return "length"
            case "content_filter" | "safety":
                return "content_filter"
            case _ if calls:
                return "tool_calls"
            case _ if self._has_refusal:
                return "content_filter"
            case "stop" | "" | "end_turn" | "eos" | "tool_calls" | "function_call":
                return "stop"
            case _:
                return "other"


def read_usage(usage: JsonObject, model: str) -> Usage:
    """Parse usage in the variants of the Chat protocol; with the cost if the service reports it."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = to_count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    cost = usage.get("cost")
    if isinstance(cost, dict):  # Perplexity
        cost = cost.get("total_cost")
    return Usage(
        model=model,
        prompt_tokens=to_count(usage.get("prompt_tokens") or usage.get("input_tokens")),
        completion_tokens=to_count(usage.get("completion_tokens") or usage.get("output_tokens")),
        cached_tokens=cached
        or to_count(usage.get("prompt_cache_hit_tokens"))
        or to_count(usage.get("cached_tokens")),
        cost=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )
