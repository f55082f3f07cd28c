"""Spans as the protobuf message that OTLP sends (ExportTraceServiceRequest), written without a library.

The messages are few and fixed; the OpenTelemetry SDK would cost 120 ms of CPU in every process that exports.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256

from daiku.core.traces.genai import Attribute, Described, describe
from daiku.core.traces.spans import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIND = {"internal": 1, "client": 3}
_ERROR = 2
_HAS_REMOTE_MASK = 0x100
"""Flag: it is known whether the parent is of another process."""


def encode_spans(spans: Sequence[Span], *, version: str, content: bool = False) -> bytes:
    """`spans` (ended ones) as the body of one request. A run at the top is one trace; ids follow from the names of
    runs and calls, so that a run that another process goes on with stays one trace."""
    encoded = b"".join(_message(2, _span(span, describe(span, content=content))) for span in spans)
    scope = _message(1, _text(1, "daiku") + _text(2, version))
    service = (("service.name", "daiku"), ("service.version", version))
    return _message(1, _message(1, b"".join(_attributes(1, service))) + _message(2, scope + encoded))


def trace_id(span: Span) -> bytes:
    """The 16 bytes that name the trace of `span`."""
    return sha256(f"trace {span.top}".encode()).digest()[:16]


def span_id(key: str) -> bytes:
    """The 8 bytes that name the span of that key."""
    return sha256(f"span {key}".encode()).digest()[:8]


def _span(span: Span, told: Described) -> bytes:
    fields = [_bytes(1, trace_id(span)), _bytes(2, span_id(span.key))]
    if span.parent is not None:
        fields.append(_bytes(4, span_id(span.parent)))
    fields += [
        _text(5, told.name),
        _number(6, _KIND[told.kind]),
        _fixed(7, _nanoseconds(span.start)),
        _fixed(8, max(_nanoseconds(span.end or span.start), _nanoseconds(span.start))),
        *_attributes(9, told.attributes),
    ]
    if told.failed:
        fields.append(_message(15, _number(3, _ERROR)))
    fields.append(_tag(16, 5) + struct.pack("<I", _HAS_REMOTE_MASK))
    return b"".join(fields)


@lru_cache(64)
def _nanoseconds(time: str) -> int:
    """A chunk's time since 1970. Exact: no floats."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1) * 1000


def _attributes(number: int, given: Iterable[tuple[str, Attribute]]) -> Iterator[bytes]:
    for key, value in given:
        short = not isinstance(value, str) or len(value) < 100
        yield _known(number, key, value) if short else _attribute(number, key, value)


def _attribute(number: int, key: str, value: Attribute) -> bytes:
    return _message(number, _text(1, key) + _message(2, _value(value)))


_known = lru_cache(1024, typed=True)(_attribute)
"""Most attributes are the same from span to span."""


def _value(value: Attribute) -> bytes:
    match value:
        case bool():
            return _number(2, int(value))
        case int():
            return _number(3, value)
        case float():
            return _tag(4, 1) + struct.pack("<d", value)
        case str():
            return _text(1, value)


@cache
def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    if 0 <= value < 0x80:
        return value.to_bytes()
    rest, found = value & (1 << 64) - 1, bytearray()  # a negative number is its 64 bits
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _number(number: int, value: int) -> bytes:
    return _tag(number, 0) + _varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _tag(number, 1) + struct.pack("<Q", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _tag(number, 2) + _varint(len(value)) + value


_message = _bytes


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode("utf-8", "replace"))
