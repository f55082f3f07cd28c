"""Assembly of streamed tool calls from pieces, including repairs for quirks of services."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Container, Iterable
from typing import cast

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject, long_id
from daiku.domain.tools import ToolCall
from daiku.models.transport.stream import replace_surrogates
from daiku.run.rules.calls.toolnames import NameMap

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(slots=True)
class CallParts:
    """Tool call that is being received. `value` holds arguments that came as an object instead of text."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    value: JsonObject | None = None
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields that only the provider understands, such as a thought signature."""

    def add_name(self, piece: str) -> None:
        """Add a piece of the name: the complete name again, a longer prefix, or only the new characters."""
        if piece.startswith(self.name):
            self.name = piece
        elif not self.name.startswith(piece) or not self.pieces:
            self.name += piece

    def add_arguments(self, piece: JsonValue) -> None:
        match piece:
            case str():
                self.pieces.append(piece)
            case dict():
                self.value = {**(self.value or {}), **piece}
            case _:
                pass

    def build(self, names: NameMap) -> ToolCall:
        """Return the complete call."""
        args, malformed = parse_arguments("".join(self.pieces))
        if self.value is not None:
            args, malformed = {**args, **self.value}, None
        return ToolCall(
            id=self.id or long_id("call"),
            tool=names.to_name(replace_surrogates(self.name)),
            args=args,
            malformed=malformed,
        )


def merge_fields(target: JsonObject, source: JsonObject, names: Container[str]) -> None:
    """Add the fields of `source` that are not in `names` to `target`, joining pieces of streamed fields."""
    for key, value in source.items():
        if key in names or value is None or value in ("", [], {}):
            continue
        match target.get(key), value:
            case str() as old, str():
                target[key] = old + value
            case dict() as old, dict():
                merge_fields(old, value, ())
            case list() as old, list():
                old.extend(value)
            case _:
                target[key] = copy.deepcopy(value)


def build_calls(parts: Iterable[CallParts], names: NameMap) -> tuple[ToolCall, ...]:
    """Return the calls in order, without unnamed ones, and with unique ids."""
    calls: list[ToolCall] = []
    used_ids: set[str] = set()
    for part in parts:
        if not part.name:
            continue
        call = part.build(names)
        if call.id in used_ids:
            call = call.model_copy(update={"id": long_id("call")})
        used_ids.add(call.id)
        calls.append(call)
    return tuple(calls)


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Return the arguments in `text` and None, or an empty object and the text if it is not a JSON object.

    Empty text and `null` mean no arguments. An object that was encoded twice is decoded twice; raw line breaks in
    strings are accepted.
    """
    if not text.strip():
        return {}, None
    value: JsonValue = text
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = cast("JsonValue", json.loads(value, strict=False, parse_constant=_reject_constant))
        except (ValueError, RecursionError):
            return {}, replace_surrogates(text)
    match value:
        case dict():
            return (value if text.isascii() and "\\u" not in text else _replace_in_object(value)), None
        case None:
            return {}, None
        case _:
            return {}, replace_surrogates(text)


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _replace_in_object(value: JsonObject) -> JsonObject:
    """Return the value with lone surrogates replaced, as the journal could not encode them."""
    text = json.dumps(value, ensure_ascii=False)
    replaced = replace_surrogates(text)
    return value if replaced is text else cast("JsonObject", json.loads(replaced))


def shorten_call_id(call_id: str, longest: int) -> str:
    """Return the id of a call for a service that allows up to `longest` letters, digits, `_`, and `-`.

    A conversation may have begun with another service, whose ids are longer.
    """
    if len(call_id) <= longest and _PLAIN_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[: min(longest, 24)]
