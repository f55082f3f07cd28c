"""Replies of the Chat Completions protocol, as OpenAI and compatible services send them."""

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
from daiku.models.openai.chat_request import PROTOCOL, author
from daiku.models.transport.calls import CallParts, build_calls, merge_fields
from daiku.models.transport.failures import from_body, stream_cut_error
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SseParser, SurrogateReplacer, replace_surrogates
from daiku.models.transport.wire import read_object, to_count
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import Text

_KNOWN = frozenset(
    {
        "role", "name", "content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning",
        "reasoning_details", "index", "channel", "executed_tools", "annotations", "audio", "images", "citations",
        "prefix", "token_ids", "logprobs", "stop_reason", "obfuscation", "usage", "finish_reason",
    }
)  # fmt: skip
"""Fields of a message that are read, or that say something about the output only."""
_KNOWN_OF_CALL = frozenset(("id", "type", "index", "function"))


class ChatDecoder:
    """One reply of the Chat Completions protocol, streamed or whole."""

    def __init__(self, service: Service, names: NameMap, model: str = "") -> None:
        self._service = service
        self._names = names
        self._model = model
        self._author = author(service.address, model)
        self._cutter = SseParser()
        self._mender = SurrogateReplacer()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[CallParts] = []
        self._by_index: dict[int, CallParts] = {}
        self._details: list[JsonObject] = []
        self._fields: JsonObject = {}
        self._thinking_field = ""
        self._news: list[ModelEvent] = []
        self._usage: JsonObject = {}
        self._finish = ""
        self._refused = False
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: bytes) -> list[ModelEvent]:
        for event in self._cutter.feed(data):
            self._event(event.name, event.data)
        news, self._news = self._news, []
        return news

    def finish(self) -> Reply:
        document = self._cutter.document
        if document is not None:
            self._document(document)
        elif not self._ended:
            for event in self._cutter.flush():
                self._last(event.name, event.data)
            if not self._ended and not self._finish:
                raise stream_cut_error(self._service)
        self._texts.append(self._mender.flush())
        calls = build_calls(self._calls, self._names)
        thinking = replace_surrogates("".join(self._thoughts))
        message = AssistantMessage(
            text=Text("".join(self._texts)), thinking=thinking, calls=calls, opaque=self._opaque(thinking)
        )
        return Reply(message, read_usage(self._usage, self._model), self._reason(bool(calls)))

    def _opaque(self, thinking: str) -> JsonObject:
        """Return what the provider must get back with this reply."""
        kept: JsonObject = {}
        if self._thinking_field and thinking:
            kept["thinking_field"] = self._thinking_field
        if self._details:
            kept["reasoning_details"] = cast("list[JsonValue]", self._details)
        if self._fields:
            kept["fields"] = self._fields
        extras: list[JsonValue] = [call.extra for call in self._calls if call.name]
        if any(extras):
            kept["calls"] = extras
        return {PROTOCOL: {"author": self._author, **kept}} if kept else {}

    def _event(self, name: str, data: bytes) -> None:
        if data == b"[DONE]":
            self._ended = True
            return
        if self._ended:
            return
        chunk = read_object(self._service, data)
        if name == "error":
            raise from_body(self._service, chunk)
        self._chunk(chunk)

    def _last(self, name: str, data: bytes) -> None:
        """An event whose blank line is missing: whole, or cut within."""
        if data == b"[DONE]" or data.endswith(b"}"):
            try:
                self._event(name, data)
            except ValueError:
                return

    def _document(self, document: bytes) -> None:
        """The body of a service that answers without streaming."""
        body = read_object(self._service, document)
        self._chunk(body, whole=True)
        if not isinstance(body.get("choices"), list):
            raise from_body(self._service, body)

    def _chunk(self, chunk: JsonObject, *, whole: bool = False) -> None:
        choices = chunk.get("choices")
        if (chunk.get("error")) or (not isinstance(choices, list) and chunk.get("object") == "error"):
            raise from_body(self._service, chunk)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        elif "x_groq" in chunk:
            own = chunk["x_groq"]
            usage = own.get("usage") if isinstance(own, dict) else None
            self._usage = usage if isinstance(usage, dict) else self._usage
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = model
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    first, second = ("message", "delta") if whole else ("delta", "message")
                    self._choice(choice, choice.get(first) or choice.get(second))

    def _choice(self, choice: JsonObject, delta: JsonValue) -> None:
        if isinstance(delta, dict):
            self._delta(delta)
        finish = choice.get("finish_reason")
        if finish:
            if finish == "error":
                raise from_body(self._service, choice)
            self._finish = str(finish)
        usage = choice.get("usage")  # Moonshot puts it here
        if isinstance(usage, dict):
            self._usage = usage

    def _delta(self, delta: JsonObject) -> None:
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str):  # nearly every event is just this
            if content:
                self._say(content)
            return
        for key in ("reasoning_content", "reasoning"):
            thought = delta.get(key)
            if isinstance(thought, str) and thought:
                self._thinking_field = key
                self._think(thought)
                break
        if isinstance(content, str):
            if content:
                self._say(content)
        elif isinstance(content, list):
            self._parts(content)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._say(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for place, part in enumerate(calls):
                if isinstance(part, dict):
                    self._call(part, place if len(calls) > 1 else None)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._call({"index": 0, "function": legacy}, None)
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._keep_details(details)
        merge_fields(self._fields, delta, _KNOWN)

    def _parts(self, parts: list[JsonValue]) -> None:
        """Content in parts, as Mistral sends it: text, and thinking that has parts itself."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            text = part.get("text")
            thinking = part.get("thinking")
            if isinstance(text, str) and text:
                self._say(text)
            if thinking:
                self._thinking_field = "content"
            if isinstance(thinking, str):
                self._think(thinking)
            elif isinstance(thinking, list):
                for inner in thinking:
                    thought = inner.get("text") if isinstance(inner, dict) else None
                    if isinstance(thought, str) and thought:
                        self._think(thought)

    def _say(self, text: str) -> None:
        text = self._mender.feed(text)
        if text:
            self._texts.append(text)
            self._news.append(TextDelta(text))

    def _think(self, text: str) -> None:
        self._thoughts.append(text)
        self._news.append(ThinkingDelta(replace_surrogates(text)))

    def _call(self, part: JsonObject, place: int | None) -> None:
        """Add a piece of a call to the call that it belongs to: by index, by id, by place, or the last."""
        function = part.get("function")
        function = function if isinstance(function, dict) else {}
        call_id = part.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        index = part.get("index")
        if not isinstance(index, int):
            index = place
        call = self._found(index, call_id, name)
        if call_id and not call.id:
            call.id = call_id
        if name:
            call.add_name(name)
        call.add_arguments(function.get("arguments"))
        merge_fields(call.extra, part, _KNOWN_OF_CALL)

    def _found(self, index: int | None, call_id: str, name: str) -> CallParts:
        if index is not None:
            call = self._by_index.get(index)
            # Some servers number every call 0; another id then tells that it is another call.
            if call is None or (call_id and call.id and call.id != call_id):
                call = self._by_index[index] = self._new_call()
            return call
        if not self._calls:
            return self._new_call()
        last = self._calls[-1]
        if call_id:
            return last if last.id == call_id else self._new_call()
        return self._new_call() if name and (last.pieces or last.value is not None) else last

    def _new_call(self) -> CallParts:
        self._calls.append(CallParts())
        return self._calls[-1]

    def _keep_details(self, details: list[JsonValue]) -> None:
        """OpenRouter's structured thoughts, with the pieces of one joined, to be sent back."""
        for detail in details:
            if not isinstance(detail, dict):
                continue
            last = self._details[-1] if self._details else {}
            same = bool(last) and all(last.get(k) == detail.get(k) for k in ("type", "index"))
            if not same:
                self._details.append(dict(detail))
                continue
            for key, value in detail.items():
                old = last.get(key)
                if key in ("text", "summary", "data") and isinstance(value, str) and isinstance(old, str):
                    last[key] = old + value
                elif value is not None:
                    last[key] = value

    def _reason(self, calls: bool) -> FinishReason:
        match self._finish:
            case "length" | "max_tokens" | "model_length":
                return "length"
            case "content_filter" | "safety":
                return "content_filter"
            case _ if calls:
                return "tool_calls"
            case _ if self._refused:
                return "content_filter"
            case "stop" | "" | "end_turn" | "eos" | "tool_calls" | "function_call":
                return "stop"
            case _:
                return "other"


def read_usage(usage: JsonObject, model: str) -> Usage:
    """Usage as the Chat protocol's many speakers write it; the cost where the service tells it."""
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
