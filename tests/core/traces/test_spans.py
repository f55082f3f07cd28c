"""Spans from chunks: what ends when, whose part it is, and what becomes of what goes wrong."""

from __future__ import annotations

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.errors import Failure
from daiku.domain.events import (
    AgentEnd,
    AgentStart,
    Event,
    HandoffEnd,
    HandoffStart,
    MessageEvent,
    Notice,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import Usage
from daiku.texts.text import Text
from daiku.trace.rules.spans import Span, SpanRecorder, session_spans

USED = Usage(model="openai/small", prompt_tokens=10, completion_tokens=2)


def session(*events: tuple[str, Event]) -> list[Chunk]:
    """Chunks, one a second; a run named `a/b` is one of `b` within run `a`."""
    found: list[Chunk] = []
    for number, (place, event) in enumerate(events, start=1):
        parent, _, run = place.rpartition("/")
        time = f"2026-01-01T00:00:{number:02}.000Z"
        found.append(
            Chunk(number, time, "ses", run, f"agent_{run}", event, encode_event(event), parent or None)
        )
    return found


def handoff(to: str, call: str) -> tuple[HandoffStart, HandoffEnd]:
    between = {"from": "agent_a", "to": f"agent_{to}", "run": to, "call_id": call}
    return (
        HandoffStart.model_validate({**between, "request": "go"}),
        HandoffEnd.model_validate({**between, "result": "done"}),
    )


START, BACK = handoff("b", "c1")
REPLY = MessageEvent(role="assistant", text=Text("I ask b."))
WHOLE = session(
    ("a", RunStarted(prompt="go", model="openai/big")),
    ("a", AgentStart(model="openai/big")),
    ("a", REPLY),
    ("a", USED),
    ("a", ToolCallEvent(id="c1", tool="agent/handoff", args={"agent": "b"})),
    ("a", START),
    ("a/b", RunStarted(prompt="go", model="openai/big")),
    ("a/b", USED),
    ("a/b", AgentEnd(usage=USED)),
    ("a/b", RunFinished(status="completed", text=Text("done"), usage=USED)),
    ("a", BACK),
    ("a", ToolResponse(id="c1", tool="agent/handoff", ok=True, result=Text("done"), outcome="done")),
    ("a", USED),
    ("a", AgentEnd(usage=USED.plus(USED))),
    ("a", RunFinished(status="completed", text=Text("fine"), usage=USED.plus(USED).plus(USED))),
)


def by_key(spans: list[Span]) -> dict[str, Span]:
    return {span.key: span for span in spans}


def seconds(span: Span) -> tuple[int, int]:
    assert span.end is not None
    return int(span.start[17:19]), int(span.end[17:19])


def test_a_run_is_one_tree_with_one_root() -> None:
    spans = session_spans(WHOLE)
    assert [(span.key, span.parent) for span in spans] == [
        ("a", None),
        ("a/chat/1", "a"),
        ("a/tool/5", "a"),
        ("b", "a/tool/5"),
        ("b/chat/1", "b"),
        ("a/chat/2", "a"),
    ]
    assert {span.top for span in spans} == {"a"}
    assert {span.status for span in spans} == {"ok"}


def test_a_call_of_a_model_begins_where_the_loop_went_on_and_ends_with_its_usage() -> None:
    spans = by_key(session_spans(WHOLE))
    assert seconds(spans["a/chat/1"]) == (2, 4)
    assert seconds(spans["a/chat/2"]) == (12, 13)
    assert seconds(spans["b"]) == (7, 10)
    assert spans["a/chat/1"].output == {"text": "I ask b."}
    assert (spans["a/chat/1"].model, spans["a/chat/1"].answered_by) == ("openai/big", "openai/small")


def test_tokens_of_an_agent_are_its_own() -> None:
    spans = by_key(session_spans(WHOLE))
    tokens = {key: span.tokens.prompt_tokens for key, span in spans.items() if span.tokens is not None}
    assert tokens == {"a": 20, "a/chat/1": 10, "a/chat/2": 10, "b": 10, "b/chat/1": 10}


def test_a_failing_model_is_a_failed_call_of_it() -> None:
    wrong = Failure(kind="rate_limit", message=Text("too many"))
    spans = by_key(
        session_spans(
            session(
                ("a", RunStarted(prompt="go", model="openai/big")),
                ("a", Notice(level="warning", text=Text("again"), attempt=1)),
                ("a", wrong),
                ("a", RunFinished(status="failed")),
            )
        )
    )
    assert (spans["a/chat/1"].status, spans["a/chat/1"].error, spans["a/chat/1"].retries) == (
        *("failed", "rate_limit"),
        1,
    )
    assert (spans["a"].status, spans["a"].error) == ("failed", "rate_limit")


def test_what_ends_otherwise_says_how() -> None:
    for status, outcome, told in (
        ("cancelled", "cancelled", ("cancelled", "cancelled")),
        ("limit", "denied", ("failed", "limit")),
    ):
        spans = by_key(
            session_spans(
                session(
                    ("a", RunStarted(prompt="go")),
                    ("a", ToolCallEvent(id="c", tool="shell/run", args={})),
                    (
                        "a",
                        ToolResponse.model_validate(
                            {"id": "c", "tool": "shell/run", "ok": False, "result": "", "outcome": outcome}
                        ),
                    ),
                    ("a", RunFinished.model_validate({"status": status})),
                )
            )
        )
        assert (spans["a"].status, spans["a"].error) == told
        assert spans["a/tool/2"].error == outcome


def test_moves_of_a_state_machine_are_no_calls_of_a_model() -> None:
    driven = session(
        ("a", RunStarted(prompt="go", driven=True)),
        ("a", REPLY),
        ("a", Usage()),
        ("a", RunFinished(status="completed")),
    )
    assert [span.kind for span in session_spans(driven)] == ["agent"]


def test_what_is_under_way_is_shown_as_running() -> None:
    spans = by_key(session_spans(WHOLE[:8]))
    running = {key for key, span in spans.items() if span.status == "running"}
    assert running == {"a", "a/tool/5", "b"}
    assert all(spans[key].end is None for key in running)


def test_a_resumed_run_is_the_same_tree_and_the_pause_is_nobodys_work() -> None:
    """What another process makes of the record goes on with the same keys."""
    for cut in range(1, len(WHOLE)):
        before, after = SpanRecorder(), SpanRecorder()
        ended = [span for chunk in WHOLE[:cut] for span in before(chunk)]
        for chunk in WHOLE[:cut]:
            after(chunk)
        after.resume(WHOLE[cut].time)
        ended += [span for chunk in WHOLE[cut:] for span in after(chunk)]
        whole = by_key(session_spans(WHOLE))
        assert {(s.key, s.parent) for s in ended} == {(s.key, s.parent) for s in whole.values()}
        assert sum(span.parent is None for span in ended) == 1
        for span in ended:
            assert span.start >= whole[span.key].start


def test_calls_of_one_id_are_spans_of_their_own() -> None:
    """Some services name the calls of every reply alike."""
    call = ToolCallEvent(id="call_0", tool="files/read", args={})
    back = ToolResponse(id="call_0", tool="files/read", ok=True, result=Text(""), outcome="done")
    spans = session_spans(session(("a", RunStarted(prompt="go")), *[("a", call), ("a", back)] * 2))
    assert len({span.key for span in spans}) == 3
