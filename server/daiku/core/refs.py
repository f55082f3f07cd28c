"""`$ref`: an action's argument that is the result of an earlier action of the same list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.tools import ToolCall

_TARGET = re.compile(r"[\w-]+(?:\.[^/#]*)?")
NOT_RUN_HEAD = "This action was not run: "


def refs(value: JsonValue) -> Iterator[str]:
    """Every `{"$ref": "<id>.path"}` in a value; references of JSON Schema (`#/…`) are none."""
    match value:
        case {"$ref": str(target)} if len(value) == 1:
            if _TARGET.fullmatch(target):
                yield target
        case dict():
            for item in value.values():
                yield from refs(item)
        case list():
            for item in value:
                yield from refs(item)
        case _:
            return


def replaced(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """`value` with every reference replaced by what `change` makes of its target."""
    match value:
        case {"$ref": str(target)} if len(value) == 1 and _TARGET.fullmatch(target):
            return change(target)
        case dict():
            return {key: replaced(item, change) for key, item in value.items()}
        case list():
            return [replaced(item, change) for item in value]
        case _:
            return value


def inner_ids(value: JsonValue) -> Iterator[str]:
    """Ids of the operations of a list that is itself an argument: its references are its own business."""
    match value:
        case {"operation": str(), "id": str(name)} if name:
            yield name
        case dict():
            for item in value.values():
                yield from inner_ids(item)
        case list():
            for item in value:
                yield from inner_ids(item)
        case _:
            return


def looked_up(path: str, text: str, data: JsonObject | None) -> JsonValue:
    """What `path` (`text`, `data.files.0.path`, or a field of data) names in a result; no path: its
    text. Raises LookupError."""
    here: JsonValue = {"text": text, "result": text, "output": text, "data": data}
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


def filled(call: ToolCall, answered: str, text: str, data: JsonObject | None) -> ToolCall:
    """`call` with its references to the call `answered` replaced by what that came to.

    One that leads nowhere stays: `why_not_run` then says so.
    """
    if not any(target.partition(".")[0] == answered for target in refs(call.args)):
        return call

    def change(target: str) -> JsonValue:
        name, _, path = target.partition(".")
        if name == answered:
            try:
                return looked_up(path, text, data)
            except LookupError:
                pass
        return {"$ref": target}

    args = replaced(call.args, change)
    assert isinstance(args, dict)
    return call.model_copy(update={"args": args})


def why_not_run(call: ToolCall, messages: Sequence[Message], given: Sequence[ToolCall] = ()) -> str:
    """Why `call`, the next of its reply, must not run: a reference of it or of an earlier action of
    the list could not be resolved (C4.8); `given` is a list that is worked over several replies.
    Empty when nothing is against it."""
    answers: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            own = {c.id for c in (*message.calls, *given)}
            for target in refs(call.args):
                if target.partition(".")[0] in own:
                    return f'{NOT_RUN_HEAD}"$ref": "{target}" cannot be resolved: there is no such result.'
            if any(answer.outcome == "not_run" for answer in answers):
                return f"{NOT_RUN_HEAD}an earlier action of the list could not be."
            return ""
        if isinstance(message, ToolMessage):
            answers.append(message)
    return ""
