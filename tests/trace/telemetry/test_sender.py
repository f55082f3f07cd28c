"""Spans on their way to a collector: over HTTP and gRPC, to dead, slow and refusing ones."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from threading import Event, Thread, current_thread

import pytest

from daiku.trace.rules.spans import session_spans
from daiku.trace.telemetry.endpoint import Endpoint, endpoint_problem, parse_endpoint, parse_headers
from daiku.trace.telemetry.sender import AS_A_TRIAL, LAST_WAIT, SLOW, NotSent, Send, SpanSender
from tests.core.traces.test_spans import WHOLE
from tests.trace.telemetry.collectors import dead_address, grpc_collector, http_collector, silent_collector

SPANS = session_spans(WHOLE)


def sent_to(address: str) -> SpanSender:
    sender = SpanSender(parse_endpoint(address), version="1")
    sender.offer(SPANS)
    return sender


def test_spans_reach_a_collector_over_http() -> None:
    """R1.57: a bare address gets /v1/traces, another one is used as it is."""
    for path, used in (("", "/v1/traces"), ("/", "/v1/traces"), ("/api/otel?x=1", "/api/otel?x=1")):
        with http_collector() as collected:
            sender = sent_to(collected.address + path)
            collected.wait(len(SPANS))
            sender.close()
            assert collected.paths == [used]
            assert collected.headers[0]["content-type"] == "application/x-protobuf"
            assert (sender.sent, sender.dropped) == (len(SPANS), 0)


def test_spans_reach_a_collector_over_grpc() -> None:
    """R1.57: grpc:// is OTLP over gRPC, with the same message."""
    with grpc_collector() as collected:
        sender = SpanSender(parse_endpoint(collected.address, {"x-key": "k"}), version="1")
        sender.offer(SPANS)
        names = {span.name for span in collected.wait(len(SPANS))}
        sender.close()
    assert "execute_tool agent/handoff" in names
    assert collected.headers[0]["x-key"] == "k"
    assert (sender.sent, sender.dropped) == (len(SPANS), 0)


def test_the_last_spans_are_sent_at_the_end() -> None:
    with http_collector() as collected:
        sender = sent_to(collected.address)
        began = time.monotonic()
        sender.close()
        assert time.monotonic() - began < LAST_WAIT
        assert len(collected.spans) == len(SPANS)


def test_a_collector_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daiku.trace.telemetry.sender.FIRST_PAUSE", 0.01)
    with http_collector(503, 429) as collected:
        sender = sent_to(collected.address)
        collected.wait(len(SPANS))
        sender.close()
    assert sender.dropped == 0


@pytest.mark.parametrize(("asked", "longest", "least"), [("1", 120.0, 1.0), ("600", 0.5, 0.5)])
def test_a_busy_collector_is_not_asked_before_the_time_that_it_names(
    monkeypatch: pytest.MonkeyPatch, asked: str, longest: float, least: float
) -> None:
    """R1.57: OTLP asks clients to follow Retry-After; here up to a maximum."""
    monkeypatch.setattr("daiku.trace.telemetry.sender.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("daiku.trace.telemetry.sender.LONGEST_RETRY_AFTER", longest)
    with http_collector(503, retry_after=asked) as collected:
        sender = sent_to(collected.address)
        collected.wait(len(SPANS))
        sender.close()
    first, second = collected.times[:2]
    assert second - first >= least
    assert sender.dropped == 0


def test_at_the_end_a_busy_collector_is_not_asked_before_the_time_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R1.57: the end does not wait for it."""
    time_now, asked, threads = [0.0], Event(), list[Thread]()
    monkeypatch.setattr("daiku.trace.telemetry.sender.monotonic", lambda: time_now[0])

    def reach(_: Endpoint) -> Send:
        def send(body: bytes, seconds: float) -> None:
            threads.append(current_thread())
            asked.set()
            raise NotSent("busy", pause=60)

        return send

    sender = SpanSender(parse_endpoint("http://127.0.0.1:9"), version="1", reach=reach)
    sender.offer(SPANS)
    assert asked.wait(10)
    time_now[0] = 59.0
    sender.close()
    threads[0].join(10)
    assert (len(threads), sender.sent, sender.dropped) == (1, 0, len(SPANS))


def test_what_a_collector_refuses_is_dropped_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with http_collector(400, 400) as collected, caplog.at_level(logging.INFO):
        sender = sent_to(collected.address)
        sender.close()
    assert (sender.sent, sender.dropped) == (0, len(SPANS))
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        f"spans do not reach {collected.address}/v1/traces",
        f"{len(SPANS)} spans did not reach {collected.address}/v1/traces, 0 did",
    ]


def test_spans_that_are_refused_while_the_end_is_counted_are_counted_once() -> None:
    """The thread is still at its last request when the end has waited long enough."""
    ended, threads = Event(), list[Thread]()

    class Slow(logging.Handler):
        def createLock(self) -> None:  # noqa: N802  # as logging spells it
            self.lock = None  # else who counts at the end would wait for the thread

        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("spans do not reach"):
                threads.append(current_thread())
                ended.wait(10)

    def reach(_: Endpoint) -> Send:
        def send(body: bytes, seconds: float) -> None:
            raise NotSent("refused", lasting=True)

        return send

    slow, logger = Slow(), logging.getLogger("daiku.trace.telemetry.sender")
    logger.addHandler(slow)
    try:
        sender = SpanSender(parse_endpoint("http://127.0.0.1:9"), version="1", reach=reach)
        sender.offer(SPANS)
        sender.close()
        assert not ended.is_set()
        ended.set()
        for thread in threads:
            thread.join(10)
        assert threads
    finally:
        ended.set()
        logger.removeHandler(slow)
    assert (sender.sent, sender.dropped) == (0, len(SPANS))


def test_a_dead_or_silent_collector_costs_nothing_at_the_end() -> None:
    with silent_collector() as silent:
        for address in (dead_address(), dead_address("grpc"), silent):
            sender = sent_to(address)
            began = time.monotonic()
            sender.close()
            assert time.monotonic() - began < SLOW + 0.3
            assert sender.sent == 0


def test_what_waits_is_bounded_and_offering_never_waits() -> None:
    stuck, let_go = Event(), Event()

    def reach(_: Endpoint) -> Send:
        def send(body: bytes, seconds: float) -> None:
            stuck.set()
            let_go.wait(10)
            raise NotSent("gone")

        return send

    sender = SpanSender(Endpoint("http://x"), version="1", reach=reach, most=100)
    sender.offer([SPANS[0]] * 5)
    assert stuck.wait(10)
    began = time.monotonic()
    sender.offer(replace(SPANS[0], key=str(n)) for n in range(1000))
    assert time.monotonic() - began < 0.5
    assert sender.dropped == 905
    let_go.set()
    sender.close()
    assert sender.sent == 0


def test_a_collector_that_never_answered_is_sent_little_once_and_not_again_at_the_end() -> None:
    """R1.78: what a dead collector costs is a few spans encoded and one connection that fails, then a pause."""
    asked, encoded = Event(), list[int]()

    def reach(_: Endpoint) -> Send:
        def send(body: bytes, seconds: float) -> None:
            encoded.append(body.count(b"execute_tool"))
            asked.set()
            raise NotSent("nobody there")

        return send

    tool = next(span for span in SPANS if span.kind == "tool")
    sender = SpanSender(Endpoint("http://x"), version="1", reach=reach)
    sender.offer(replace(tool, key=str(n)) for n in range(400))
    assert asked.wait(10)
    began = time.monotonic()
    sender.close()
    assert time.monotonic() - began < SLOW
    assert len(encoded) == 1
    assert encoded[0] <= 2 * AS_A_TRIAL  # each names its tool twice
    assert (sender.sent, sender.dropped) == (0, 400)


def test_a_collector_that_answers_is_sent_the_rest_at_once() -> None:
    sizes = list[int]()

    def reach(_: Endpoint) -> Send:
        return lambda body, _seconds: sizes.append(len(body))

    sender = SpanSender(Endpoint("http://x"), version="1", reach=reach)
    sender.offer(replace(SPANS[0], key=str(n)) for n in range(200))
    sender.close()
    assert (sender.sent, sender.dropped, len(sizes)) == (200, 0, 2)
    assert sizes[0] * 10 < sizes[1]


def test_addresses_are_judged_and_read() -> None:
    for wrong in ("localhost:4317", "ftp://x", "http://", "http://x:0", "http://[", "otel"):
        assert "is no address of a collector" in endpoint_problem(wrong)
    assert "pw" not in endpoint_problem("ftp://me:pw@x")
    for right in ("http://localhost:4318", "https://x/y", "grpc://h", "grpcs://h:1"):
        assert not endpoint_problem(right)
    assert parse_endpoint("grpc://h") == Endpoint("h:4317", grpc=True)
    assert parse_endpoint("grpcs://[::1]:9").target == "[::1]:9"
    assert parse_endpoint("grpcs://h").secure
    login = parse_endpoint("https://me:p%40w@h/v1")
    assert (login.target, login.headers) == ("https://h/v1", {"authorization": "Basic bWU6cEB3"})
    assert parse_headers("Authorization=Bearer%20x, a=b=c,,=d,e") == {"authorization": "Bearer x", "a": "b=c"}


def test_without_the_library_of_grpc_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "daiku[otlp-grpc]" in endpoint_problem("grpc://h:1")
    assert not endpoint_problem("http://h:1")
