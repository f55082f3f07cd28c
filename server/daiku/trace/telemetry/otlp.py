"""Spans as OTLP protobuf messages, built from opentelemetry-proto's classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from daiku.trace.rules.genai import Attribute, describe
from daiku.trace.rules.spans import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIND = {"internal": trace_pb2.Span.SPAN_KIND_INTERNAL, "client": trace_pb2.Span.SPAN_KIND_CLIENT}
_INT64_MAX = 2**63 - 1


def encode_spans(spans: Sequence[Span], *, version: str, content: bool = False) -> bytes:
    """Encode ended spans as one request.

    Ids derive from runs and calls, so that a resumed run stays one trace.
    """
    service = _encode_attributes((("service.name", "daiku"), ("service.version", version)))
    scope = trace_pb2.ScopeSpans(
        scope=InstrumentationScope(name="daiku", version=version),
        spans=[_encode_span(span, content=content) for span in spans],
    )
    resource = trace_pb2.ResourceSpans(resource=Resource(attributes=service), scope_spans=[scope])
    return ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def trace_id(span: Span) -> bytes:
    """Return the 16 bytes that identify the trace of `span`."""
    return sha256(f"trace {span.top}".encode()).digest()[:16]


def span_id(key: str) -> bytes:
    """Return the 8 bytes that identify the span with this key."""
    return sha256(f"span {key}".encode()).digest()[:8]


def _encode_span(span: Span, *, content: bool) -> trace_pb2.Span:
    described, start = describe(span, content=content), _unix_nanoseconds(span.start)
    return trace_pb2.Span(
        trace_id=trace_id(span),
        span_id=span_id(span.key),
        parent_span_id=b"" if span.parent is None else span_id(span.parent),
        name=_replace_surrogates(described.name),
        kind=_KIND[described.kind],
        start_time_unix_nano=start,
        end_time_unix_nano=max(_unix_nanoseconds(span.end or span.start), start),
        attributes=_encode_attributes(described.attributes),
        status=trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR) if described.failed else None,
        flags=trace_pb2.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK,
    )


@lru_cache(64)
def _unix_nanoseconds(time: str) -> int:
    """Return a chunk's time in nanoseconds since 1970, without rounding."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1) * 1000


def _encode_attributes(attributes: Iterable[tuple[str, Attribute]]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_encode_value(value)) for key, value in attributes]


def _encode_value(value: Attribute) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=max(-_INT64_MAX, min(value, _INT64_MAX)))
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=_replace_surrogates(value))


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which protobuf refuses."""
    return text.encode("utf-8", "replace").decode()
