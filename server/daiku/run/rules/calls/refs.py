"""`$ref`: an action's argument that is the result of an earlier action of the same list."""

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
    """Every `{"$ref": "<id>.path"}` in a value; references of JSON Schema (`#/…`) are none."""
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
    """`value` with every reference replaced by what `change` makes of its target."""
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
    """Yield ids and numbers of the operations in a nested action list; their references are not resolved here."""
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
    """Replace positions in references (`1.text`: the first call's text) by the ids of those calls."""
    found: list[ToolCall] = []
    ids: dict[str, str] = {}
    for number, call in enumerate(calls, 1):
        if any(find_refs(call.args)):
            call = rename_refs(call, ids)
        found.append(call)
        ids[str(number)] = call.id
    return tuple(found)


def rename_refs(call: ToolCall, ids: Mapping[str, str]) -> ToolCall:
    """`call` with the names in its references replaced by the ids of the calls that they stand for."""
    inner = set(inner_ids(call.args))

    def change(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        renamed = name if name in inner else ids.get(name, name)
        return {"$ref": renamed + dot + path}

    args = replace_refs(call.args, change)
    assert isinstance(args, dict)
    return call.model_copy(update={"args": args})


def is_referred_to(call_id: str, calls: Iterable[ToolCall]) -> bool:
    """True where one of `calls` uses what the call `call_id` comes to."""
    return any(target.partition(".")[0] == call_id for call in calls for target in find_refs(call.args))


PLAIN = "plain"
"""Where `data` keeps the text of a result as it is: a file without line numbers, for calls that use it."""


def plain_text(text: str, data: JsonObject | None) -> str:
    """Return a tool's bare result (output, file text) without the wording for the model."""
    found = (data or {}).get(PLAIN, (data or {}).get("output"))
    return found if isinstance(found, str) else text


def look_up(path: str, text: str, data: JsonObject | None) -> JsonValue:
    """Return the value at `path` in a result (`text`, `data.files.0.path`), by default its text. Raises LookupError."""
    plain = plain_text(text, data)
    here: JsonValue = {"text": plain, "result": plain, "output": plain, "stdout": plain, "data": data}
    parts = [part for part in path.split(".") if part] or ["text"]
    if parts[0] not in here and data is not None:
        here = data
    for part in parts:
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            raise LookupError(part)
    return here


def fill_refs(call: ToolCall, answered: str, text: str, data: JsonObject | None) -> ToolCall:
    """Return `call` with its references to the call `answered` replaced by values; unresolvable ones stay."""
    if not any(target.partition(".")[0] == answered for target in find_refs(call.args)):
        return call

    def change(target: str) -> JsonValue:
        name, _, path = target.partition(".")
        if name == answered:
            try:
                return look_up(path, text, data)
            except LookupError:
                pass
        return {"$ref": target}

    args = replace_refs(call.args, change)
    assert isinstance(args, dict)
    return call.model_copy(update={"args": args})


def why_not_run(call: ToolCall, messages: Sequence[Message]) -> Text:
    """Return why `call` must not run: it or an earlier action has an unresolved reference (C4.8). Empty if it may."""
    answers: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            inner = set(inner_ids(call.args))
            for target in find_refs(call.args):
                if target.partition(".")[0] not in inner:
                    return text("calls.unresolved", target=target)
            if any(answer.outcome == "not_run" for answer in answers):
                return text("calls.earlier_not_run")
            return NO_TEXT
        if isinstance(message, ToolMessage):
            answers.append(message)
    return NO_TEXT
