"""Chunks: events in their envelopes, as stored, sent, and shown; JSON encoding of events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring
from time import time_ns
from typing import NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from daiku.domain.base import Localizable
from daiku.domain.events import EVENTS, Delta, Event, Thinking
from daiku.texts.text import ENGLISH


def decode_event(type_: str, data: bytes | str) -> Event:
    """Return the event of `type_` from its JSON data.

    Raises KeyError for an unknown type, pydantic.ValidationError for invalid data.
    """
    return EVENTS[type_].model_validate_json(data)


def encode_event(event: Event) -> str:
    """Return the event's data as camelCase JSON text without its type; None fields are omitted."""
    if isinstance(event, Delta | Thinking):  # the most frequent events; ten times cheaper than pydantic
        return f'{{"text":{encode_basestring(event.text)}}}'
    try:
        # A quarter cheaper than model_dump_json.
        return to_json(event, by_alias=True, exclude_none=True).decode()
    except PydanticSerializationError:  # an unpaired surrogate, as in file names that are not UTF-8
        plain = event.model_dump(by_alias=True, exclude_none=True)
        return json.dumps(_encodable(plain), ensure_ascii=False, separators=(",", ":"))


def _encodable(value: object) -> object:
    """Return `value` with unpaired surrogates replaced by U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list() | tuple():
            return [_encodable(item) for item in cast("Sequence[object]", value)]
        case dict():
            items = cast("Mapping[str, object]", value).items()
            return {str(_encodable(key)): _encodable(item) for key, item in items}
        case _:
            return value


class Chunk(NamedTuple):
    """An event in its envelope: journal record, wire message, and input of the views.

    `seq` rises by one within a session. `time` is ISO 8601 UTC with milliseconds and Z. `data` is the cached
    result of `encode_event(event)`.
    """

    seq: int
    time: str
    session: str
    run: str
    agent: str
    event: Event
    data: str
    parent: str | None = None

    @property
    def type(self) -> str:
        return self.event.type

    @property
    def text(self) -> str:
        """The text that a `delta` appends to the answer; empty for other chunks."""
        return self.event.text if isinstance(self.event, Delta) else ""

    def in_language(self, language: str) -> Chunk:
        """Return the chunk with its sentences translated into `language`."""
        if language == ENGLISH or not isinstance(self.event, Localizable):
            return self
        event = self.event.in_language(language)
        return self if event is self.event else self._replace(event=event, data=encode_event(event))

    def json(self) -> str:
        """Return the chunk as one line of JSON."""
        parent = f'"parent":"{self.parent}",' if self.parent else ""
        return (
            f'{{"seq":{self.seq},"time":"{self.time}","session":"{self.session}",'
            f'"run":"{self.run}",{parent}"agent":"{self.agent}",'
            f'"type":"{self.event.type}","data":{self.data}}}'
        )


_now: tuple[int, str] = (0, "")


def top_runs(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Return the top-level run id of each run in a session's chunks, which must be in order."""
    tops: dict[str, str] = {}
    for chunk in chunks:
        if chunk.run not in tops:
            tops[chunk.run] = tops.get(chunk.parent, chunk.parent) if chunk.parent else chunk.run
    return tops


def iso_now() -> str:
    """Return the current time in ISO 8601 UTC with milliseconds and Z."""
    global _now  # noqa: PLW0603  # cached for one millisecond
    ms = time_ns() // 1_000_000
    if _now[0] != ms:
        text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
        _now = (ms, text.replace("+00:00", "Z"))
    return _now[1]
