"""Streamed tool calls assembled from their pieces, with every known quirk of a service repaired."""

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
from daiku.models.transport.stream import mend
from daiku.run.rules.calls.toolnames import NameMap

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(slots=True)
class CallParts:
    """One call while it arrives. `value` holds arguments that came as an object instead of as text."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    value: JsonObject | None = None
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields that only the provider understands, such as a thought signature."""

    def add_name(self, piece: str) -> None:
        """Take a piece of the name: the whole again, the name so far and more, or only what is new."""
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

    def whole(self, names: NameMap) -> ToolCall:
        args, malformed = parse_arguments("".join(self.pieces))
        if self.value is not None:
            args, malformed = {**args, **self.value}, None
        return ToolCall(
            id=self.id or long_id("call"), tool=names.to_name(mend(self.name)), args=args, malformed=malformed
        )


def keep_fields(target: JsonObject, source: JsonObject, names: Container[str]) -> None:
    """Add the fields of `source` whose names are not in `names` to `target`, joining the pieces of a streamed one."""
    for key, value in source.items():
        if key in names or value is None or value in ("", [], {}):
            continue
        match target.get(key), value:
            case str() as old, str():
                target[key] = old + value
            case dict() as old, dict():
                keep_fields(old, value, ())
            case list() as old, list():
                old.extend(value)
            case _:
                target[key] = copy.deepcopy(value)


def whole_calls(parts: Iterable[CallParts], names: NameMap) -> tuple[ToolCall, ...]:
    """The calls in order; those without a name are none, and no two share an id."""
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for part in parts:
        if not part.name:
            continue
        call = part.whole(names)
        if call.id in taken:
            call = call.model_copy(update={"id": long_id("call")})
        taken.add(call.id)
        calls.append(call)
    return tuple(calls)


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """The arguments in `text` and None, or an empty object and the text that is no JSON object.

    Nothing at all and `null` are no arguments; an object that was encoded twice is decoded twice;
    raw line ends within strings are let through.
    """
    if not text.strip():
        return {}, None
    value: JsonValue = text
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = cast("JsonValue", json.loads(value, strict=False, parse_constant=_no_constant))
        except (ValueError, RecursionError):
            return {}, mend(text)
    match value:
        case dict():
            return (value if text.isascii() and "\\u" not in text else _mended(value)), None
        case None:
            return {}, None
        case _:
            return {}, mend(text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _mended(value: JsonObject) -> JsonObject:
    """`value` with every string encodable: a lone surrogate would break the journal later."""
    text = json.dumps(value, ensure_ascii=False)
    whole = mend(text)
    return value if whole is text else cast("JsonObject", json.loads(whole))


def wire_id(call_id: str, longest: int) -> str:
    """The id of a call for a service that allows `longest` letters, digits, `_` and `-`.

    A conversation may have been begun with another service, whose ids are longer.
    """
    if len(call_id) <= longest and _PLAIN_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[: min(longest, 24)]
