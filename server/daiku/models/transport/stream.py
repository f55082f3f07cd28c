"""Parsing of streaming response bytes into server-sent events, JSON lines, and JSON values."""

from __future__ import annotations

import json
from typing import NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json

_BOM = b"\xef\xbb\xbf"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Created once, as `json.dumps` creates an encoder per call for non-default options."""


class SseEvent(NamedTuple):
    """One server-sent event; `name` is "" if the stream gives none."""

    name: str
    data: bytes


class SseParser:
    r"""Incremental parser of server-sent events; each byte is read once.

    Line ends may be \n, \r\n, or \r, also split between pieces. A byte-order mark, comments, and fields other than
    `event` and `data` are skipped. A body that is a JSON document (an error, or a service that does not stream) is
    stored in `document`.
    """

    __slots__ = ("_after_cr", "_buffer", "_is_document", "_searched", "_started")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self._started = False
        self._is_document = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that `data` completes, oldest first."""
        if not self._started:
            data = self._start(data)
        if self._is_document:
            self._buffer += data
            return []
        if self._after_cr or b"\r" in data:
            data = self._normalize_line_ends(data)
        buffer = self._buffer
        if not buffer and data[-2:] == b"\n\n":  # fast path: complete events, nothing to buffer
            if data[:6] == b"data: " and data.find(b"\n") == len(data) - 2:
                return [SseEvent("", data[6:-2])]
            return _parse_events(data)
        buffer += data
        end = buffer.rfind(b"\n\n", self._searched)
        if end < 0:
            self._searched = max(0, len(buffer) - 1)
            return []
        complete = bytes(buffer[:end])
        del buffer[: end + 2]
        self._searched = max(0, len(buffer) - 1)
        return _parse_events(complete)

    def flush(self) -> list[SseEvent]:
        """Return the events left in the buffer at the end, as some services omit the last blank line."""
        if self._is_document or not self._buffer:
            return []
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return _parse_events(rest)

    @property
    def document(self) -> bytes | None:
        """The body if it is a JSON document instead of events; complete at the end of the stream."""
        return bytes(self._buffer) if self._is_document else None

    def _start(self, data: bytes) -> bytes:
        """Skip a byte-order mark and leading blanks, and detect the kind of body."""
        data = bytes(self._buffer) + data
        self._buffer.clear()
        if _BOM.startswith(data[:3]) and data[:3] != _BOM:
            self._buffer += data  # part of a byte-order mark, or empty
            return b""
        data = data.removeprefix(_BOM).lstrip(b" \t\r\n")
        if data:
            self._started = True
            self._is_document = data[:1] in (b"{", b"[")
        return data

    def _normalize_line_ends(self, data: bytes) -> bytes:
        r"""Return `data` with \n as line end, also for a \r\n that is split between two pieces."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _parse_events(text: bytes) -> list[SseEvent]:
    """Return the events of `text`, whose blocks are separated by blank lines."""
    events: list[SseEvent] = []
    for block in text.split(b"\n\n"):
        if block.startswith(b"data: ") and b"\n" not in block:
            events.append(SseEvent("", block[6:]))
        elif block.startswith(b"event: ") and block.count(b"\n") == 1 and (at := block.find(b"\ndata: ")) > 0:
            events.append(SseEvent(block[7:at].decode("utf-8", "replace"), block[at + 7 :]))
        elif block and (event := _parse_event(block)) is not None:
            events.append(event)
    return events


def _parse_event(block: bytes) -> SseEvent | None:
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        # llama.cpp and GPUStack send errors in their own field.
        elif field == b"error" and value.startswith(b"{"):
            data.append(b'{"error":' + value + b"}")
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    if data:
        return SseEvent(name, b"\n".join(data))
    # Some gateways send a bare JSON error between two events.
    return SseEvent(name, block) if block.startswith(b"{") else None


class LineParser:
    """Incremental parser of lines (newline-delimited JSON)."""

    __slots__ = ("_pieces", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._started = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without line ends and blank lines."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._pieces, complete[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        return self._without_blank(complete)

    def flush(self) -> list[bytes]:
        """Return the last line if its line end is missing."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        return self._without_blank([rest])

    def _without_blank(self, lines: list[bytes]) -> list[bytes]:
        if lines and not self._started:
            lines[0] = lines[0].removeprefix(_BOM)
            self._started = True
        return [stripped for line in lines if (stripped := line.strip())]


def parse_json(data: bytes) -> JsonValue:
    """Parse JSON, accepting lone surrogates and raw control characters, which local servers send. Raises ValueError.

    Callers handle both, for example with `SurrogateReplacer`.
    """
    try:
        return cast("JsonValue", from_json(data, cache_strings="keys"))
    except ValueError:
        return cast("JsonValue", json.loads(data.decode("utf-8"), strict=False))


class SurrogateReplacer:
    """Incremental replacement of lone surrogates, so that every piece of a text can be encoded.

    Joins a surrogate pair that is split between pieces, and replaces a lone half by U+FFFD.
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return replace_surrogates(text)

    def flush(self) -> str:
        """Return U+FFFD if the text ended within a surrogate pair, else ""."""
        rest, self._half = self._half, ""
        return replace_surrogates(rest)


def replace_surrogates(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone halves replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def encode_json(value: JsonValue) -> bytes:
    """Encode a value as compact UTF-8 JSON. Lone surrogates become U+FFFD."""
    return replace_surrogates(_ENCODER.encode(value)).encode()
