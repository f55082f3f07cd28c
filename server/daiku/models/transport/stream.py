"""Bytes of a streaming answer cut into server-sent events, JSON lines and JSON values."""

from __future__ import annotations

import json
from typing import NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json

_BOM = b"\xef\xbb\xbf"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Made once: `json.dumps` makes one for each value that it is not to encode as usual."""


class SseEvent(NamedTuple):
    """One server-sent event; `name` is "" where the stream gives none."""

    name: str
    data: bytes


class SseCutter:
    """Cuts server-sent events out of bytes that arrive in any pieces, each byte looked at once.

    Line ends may be \\n, \\r\\n or \\r, in the middle of which a piece may end; a byte-order mark,
    comments and fields other than `event` and `data` are skipped. A body that is no event stream
    but one JSON document (an error, or a service that does not stream) is kept whole: `document`.
    """

    __slots__ = ("_after_cr", "_buffer", "_searched", "_started", "_whole")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self._started = False
        self._whole = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes, oldest first."""
        if not self._started:
            data = self._start(data)
        if self._whole:
            self._buffer += data
            return []
        if self._after_cr or b"\r" in data:
            data = self._unify(data)
        buffer = self._buffer
        if not buffer and data[-2:] == b"\n\n":  # the usual case: whole events, nothing to keep
            if data[:6] == b"data: " and data.find(b"\n") == len(data) - 2:
                return [SseEvent("", data[6:-2])]
            return _events(data)
        buffer += data
        end = buffer.rfind(b"\n\n", self._searched)
        if end < 0:
            self._searched = max(0, len(buffer) - 1)
            return []
        complete = bytes(buffer[:end])
        del buffer[: end + 2]
        self._searched = max(0, len(buffer) - 1)
        return _events(complete)

    def flush(self) -> list[SseEvent]:
        """What stands in the buffer when the bytes end: some services forget the last blank line."""
        if self._whole or not self._buffer:
            return []
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return _events(rest)

    @property
    def document(self) -> bytes | None:
        """The whole body where it is one JSON document instead of events; complete at the end."""
        return bytes(self._buffer) if self._whole else None

    def _start(self, data: bytes) -> bytes:
        """Skip a byte-order mark and leading blanks, and see what kind of body begins here."""
        data = bytes(self._buffer) + data
        self._buffer.clear()
        if _BOM.startswith(data[:3]) and data[:3] != _BOM:
            self._buffer += data  # a piece of a mark, or nothing yet
            return b""
        data = data.removeprefix(_BOM).lstrip(b" \t\r\n")
        if data:
            self._started = True
            self._whole = data[:1] in (b"{", b"[")
        return data

    def _unify(self, data: bytes) -> bytes:
        """Every line end as \\n, also a \\r\\n that two pieces share."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _events(text: bytes) -> list[SseEvent]:
    """The events of `text`, whose blocks are separated by blank lines."""
    found: list[SseEvent] = []
    for block in text.split(b"\n\n"):
        if block.startswith(b"data: ") and b"\n" not in block:
            found.append(SseEvent("", block[6:]))
        elif block.startswith(b"event: ") and block.count(b"\n") == 1 and (at := block.find(b"\ndata: ")) > 0:
            found.append(SseEvent(block[7:at].decode("utf-8", "replace"), block[at + 7 :]))
        elif block and (event := _event(block)) is not None:
            found.append(event)
    return found


def _event(block: bytes) -> SseEvent | None:
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"error" and value.startswith(b"{"):  # llama.cpp and GPUStack: a field of its own
            data.append(b'{"error":' + value + b"}")
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    if data:
        return SseEvent(name, b"\n".join(data))
    # Some gateways put a bare JSON error between two events.
    return SseEvent(name, block) if block.startswith(b"{") else None


class LineCutter:
    """Cuts lines (newline-delimited JSON) out of bytes that arrive in any pieces."""

    __slots__ = ("_pieces", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._started = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends and without blank ones."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._pieces, complete[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        return self._without_blank(complete)

    def flush(self) -> list[bytes]:
        """The last line, where its end is missing."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        return self._without_blank([rest])

    def _without_blank(self, lines: list[bytes]) -> list[bytes]:
        if lines and not self._started:
            lines[0] = lines[0].removeprefix(_BOM)
            self._started = True
        return [stripped for line in lines if (stripped := line.strip())]


def parse_json(data: bytes) -> JsonValue:
    """The value of `data`; lone halves of surrogate pairs and raw control characters are let
    through (local servers send both), `TextMender` and callers deal with them.

    Raises ValueError.
    """
    try:
        return cast("JsonValue", from_json(data, cache_strings="keys"))
    except ValueError:
        return cast("JsonValue", json.loads(data.decode("utf-8"), strict=False))


class TextMender:
    """Makes every piece of a streamed text encodable: joins a surrogate pair that two pieces share,
    and puts U+FFFD for a half that stays alone."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mend(text)

    def flush(self) -> str:
        """U+FFFD where the text ended within a pair."""
        rest, self._half = self._half, ""
        return mend(rest)


def mend(text: str) -> str:
    """`text` with surrogate pairs joined and lone halves replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def encode_json(value: JsonValue) -> bytes:
    """Compact UTF-8 JSON; lone surrogates become U+FFFD, so that any text can be sent."""
    return mend(_ENCODER.encode(value)).encode()
