"""Spans as OTLP messages, read back with OpenTelemetry's own protobuf classes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from daiku.domain.messages import Usage
from daiku.trace.rules.genai import describe
from daiku.trace.rules.spans import Span, session_spans
from daiku.trace.telemetry.otlp import encode_spans, span_id, trace_id
from tests.core.traces.test_spans import WHOLE

Values = dict[str, str | int | float | bool]
PLAIN = Span("a", None, "ses", "a", "a", "agent", "coder", "2026-01-01T00:00:01.234Z", 1, model="openai/big")


def decoded(body: bytes) -> list[trace_pb2.Span]:
    request = ExportTraceServiceRequest.FromString(body)
    [resource] = request.resource_spans
    [scope] = resource.scope_spans
    assert scope.scope.name == "daiku"
    assert values(resource.resource.attributes) == {"service.name": "daiku", "service.version": "1.2"}
    return list(scope.spans)


def values(attributes: object) -> Values:
    found: Values = {}
    for each in attributes:  # pyright: ignore[reportGeneralTypeIssues]  # protobuf's own list
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, kind)
    return found


def test_a_run_is_one_trace_with_one_root_in_the_conventions_words() -> None:
    """R1.57: invoke_agent, chat and execute_tool, with models, tokens and tools."""
    spans = decoded(encode_spans(session_spans(WHOLE), version="1.2"))
    assert len({span.trace_id for span in spans}) == 1
    assert [span.name for span in spans if not span.parent_span_id] == ["invoke_agent agent_a"]
    ids = {span.span_id for span in spans}
    assert all(span.parent_span_id in ids for span in spans if span.parent_span_id)
    told = {span.name: values(span.attributes) for span in spans}
    assert told["chat big"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "big",
        "gen_ai.response.model": "small",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.agent.name": "agent_a",
        "gen_ai.conversation.id": "ses",
        "daiku.run.id": "a",
        "daiku.status": "ok",
    } | {
        "gen_ai.agent.name": told["chat big"]["gen_ai.agent.name"],
        "daiku.run.id": told["chat big"]["daiku.run.id"],
    }
    tool = told["execute_tool agent/handoff"]
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "agent/handoff")
    assert told["invoke_agent agent_b"]["gen_ai.agent.name"] == "agent_b"
    assert told["invoke_agent agent_a"]["gen_ai.usage.input_tokens"] == 20


def test_times_are_exact() -> None:
    ended = replace(PLAIN, end="2026-01-01T00:00:02.999Z", status="ok")
    [span] = decoded(encode_spans([ended], version="1.2"))
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        1_767_225_601_234_000_000,
        1_767_225_602_999_000_000,
    )
    backwards = replace(PLAIN, end="2025-12-31T00:00:00.000Z")
    [span] = decoded(encode_spans([backwards], version="1.2"))
    assert span.end_time_unix_nano == span.start_time_unix_nano


def test_what_failed_says_why_and_nothing_else() -> None:
    failed = replace(
        PLAIN, end=PLAIN.start, status="failed", error="rate_limit", input="a secret plan", output="no"
    )
    [span] = decoded(encode_spans([failed], version="1.2"))
    assert span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    assert values(span.attributes)["error.type"] == "rate_limit"
    assert b"secret plan" not in encode_spans([failed], version="1.2")


def test_content_goes_along_by_consent_only() -> None:
    whole = session_spans(WHOLE)
    told = {s.key: dict(describe(s, content=True).attributes) for s in whole}
    assert told["a/tool/5"]["gen_ai.tool.call.arguments"] == '{"agent":"b"}'
    assert told["a/tool/5"]["gen_ai.tool.call.result"] == '"done"'
    assert told["a"]["gen_ai.input.messages"] == '[{"role":"user","parts":[{"type":"text","content":"go"}]}]'
    assert "I ask b." in str(told["a/chat/1"]["gen_ai.output.messages"])
    without = encode_spans(whole, version="1.2")
    for said in (b"I ask b.", b"fine", b'"agent":"b"'):
        assert said not in without
        assert said in encode_spans(whole, version="1.2", content=True)


def test_ids_follow_from_names() -> None:
    other = replace(PLAIN, key="b", top="b")
    assert (len(trace_id(PLAIN)), len(span_id("a"))) == (16, 8)
    assert trace_id(PLAIN) == trace_id(replace(PLAIN, key="inner")) != trace_id(other)
    assert span_id("a") != span_id("b")


def test_a_lone_surrogate_and_a_number_beyond_64_bits_do_not_stop_the_sender() -> None:
    used = Usage(prompt_tokens=2**70, completion_tokens=0)
    [span] = decoded(
        encode_spans([replace(PLAIN, end=PLAIN.start, agent="a\ud800", tokens=used)], version="1.2")
    )
    told = values(span.attributes)
    assert (span.name, told["gen_ai.agent.name"]) == ("invoke_agent a?", "a?")
    assert told["gen_ai.usage.input_tokens"] == 2**63 - 1


@given(st.text(), st.integers(0, 2**62), st.floats(0, 1e6), st.integers(0, 2**40))
def test_any_name_and_number_comes_through(name: str, tokens: int, cost: float, cached: int) -> None:
    used = Usage(prompt_tokens=tokens, completion_tokens=0, cached_tokens=cached, cost=cost)
    ended = replace(PLAIN, end=PLAIN.start, agent=name, tokens=used)
    [span] = decoded(encode_spans([ended], version="1.2"))
    told = values(span.attributes)
    assert told["gen_ai.agent.name"] == name.encode("utf-8", "replace").decode()
    assert told["gen_ai.usage.input_tokens"] == tokens
    assert told["daiku.cost_usd"] == cost
    assert told.get("gen_ai.usage.cache_read.input_tokens", 0) == cached
