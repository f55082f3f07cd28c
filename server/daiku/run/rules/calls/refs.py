"""References (`$ref`) in a call's arguments to results of earlier calls in the same list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import ToolCall
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

_TARGET = lazy(r"[\w-]+(?:\.[^/#]*)?")


def find_refs(value: JsonValue) -> Iterator[str]:
    """Yield every `{"$ref": "<id>.path"}` in a value, without JSON Schema references (`#/…`)."""
    match value:
        case {"$ref": str(target)} if len(value) == 1:
            if _TARGET.fullmatch(target):
                yield target
        case dict():
            for item in value.values():
                yield from find_refs(item)
        case list():
            for item in value:
                yield from find_refs(item)
        case _:
            return


def replace_refs(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """Return `value` with every reference replaced by `change(target)`."""
    match value:
        case {"$ref": str(target)} if len(value) == 1 and _TARGET.fullmatch(target):
            return change(target)
        case dict():
            return {key: replace_refs(item, change) for key, item in value.items()}
        case list():
            return [replace_refs(item, change) for item in value]
        case _:
            return value


def inner_ids(value: JsonValue) -> Iterator[str]:
    """Yield ids and numbers of operations in nested action lists, whose references are not resolved here."""
    match value:
        case dict():
            for item in value.values():
                yield from inner_ids(item)
        case list():
            for number, item in enumerate(value, 1):
                if isinstance(item, dict) and isinstance(item.get("operation"), str):
                    own = item.get("id")
                    yield from (str(number), str(own)) if isinstance(own, str | int) else (str(number),)
                yield from inner_ids(item)
        case _:
            return


def resolve_positions(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Replace positions in references (`1.text`: text of the first call) with the ids of those calls."""
    resolved: list[ToolCall] = []
    ids: dict[str, str] = {}
    for number, call in enumerate(calls, 1):
        if any(find_refs(call.args)):
            call = rename_refs(call, ids)
        resolved.append(call)
        ids[str(number)] = call.id
    return tuple(resolved)


def rename_refs(call: ToolCall, ids: Mapping[str, str]) -> ToolCall:
    """Return `call` with names in references replaced by call ids."""
    inner = set(inner_ids(call.args))

    def change(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        renamed = name if name in inner else ids.get(name, name)
        return {"$ref": renamed + dot + path}

    args = replace_refs(call.args, change)
    assert isinstance(args, dict)
    return call.model_copy(update={"args": args})


def is_referred_to(call_id: str, calls: Iterable[ToolCall]) -> bool:
    """Return True if one of `calls` uses the result of `call_id`."""
    return any(target.partition(".")[0] == call_id for call in calls for target in find_refs(call.args))


PLAIN = "plain"
"""Key in `data` of a result's raw text, such as a file without line numbers, for calls that use it."""


def plain_text(text: str, data: JsonObject | None) -> str:
    """Return a tool's raw result (output, file text) without formatting for the model."""
    content = (data or {}).get(PLAIN, (data or {}).get("output"))
    return content if isinstance(content, str) else text


def look_up(path: str, text: str, data: JsonObject | None) -> JsonValue:
    """Return the value at `path` in a result (`text`, `data.files.0.path`), by default its text.

    Raises LookupError.
    """
    plain = plain_text(text, data)
    value: JsonValue = {"text": plain, "result": plain, "output": plain, "stdout": plain, "data": data}
    parts = [part for part in path.split(".") if part] or ["text"]
    if parts[0] not in value and data is not None:
        value = data
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise LookupError(part)
    return value


def fill_refs(call: ToolCall, call_id: str, text: str, data: JsonObject | None) -> ToolCall:
    """Return `call` with its references to the call `call_id` replaced by values; unresolvable ones stay."""
    if not any(target.partition(".")[0] == call_id for target in find_refs(call.args)):
        return call

    def change(target: str) -> JsonValue:
        name, _, path = target.partition(".")
        if name == call_id:
            try:
                return look_up(path, text, data)
            except LookupError:
                pass
        return {"$ref": target}

    args = replace_refs(call.args, change)
    assert isinstance(args, dict)
    return call.model_copy(update={"args": args})


def unresolved_reason(call: ToolCall, messages: Sequence[Message]) -> Text:
    """Return why `call` must not run (an unresolved reference in it or an earlier action), else ""."""
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            inner = set(inner_ids(call.args))
            for target in find_refs(call.args):
                if target.partition(".")[0] not in inner:
                    return text("calls.unresolved", target=target)
            if any(answer.outcome == "not_run" for answer in results):
                return text("calls.earlier_not_run")
            return NO_TEXT
        if isinstance(message, ToolMessage):
            results.append(message)
    return NO_TEXT
