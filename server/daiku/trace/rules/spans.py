"""A session's chunks as spans: one for each agent at work, each call of a model, each call of a tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    AgentEnd,
    AgentStart,
    ApprovalGiven,
    HandoffEnd,
    HandoffStart,
    InputGiven,
    MessageEvent,
    Notice,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted
from daiku.domain.messages import Usage

SpanKind = Literal["agent", "chat", "tool"]
SpanStatus = Literal["running", "ok", "failed", "cancelled"]

OF_A_MODEL = frozenset(
    (
        *("auth", "rate_limit", "timeout", "connection", "overloaded", "bad_request", "not_found"),
        *("no_provider", "context_overflow", "stream_cut", "content_filter", "format"),
    )
)
"""Kinds of failures by which a call of a model ends."""
WAITED_FOR = (AgentStart, ToolResponse, HandoffEnd, ApprovalGiven, InputGiven, Compacted, RunStarted, Usage)
"""Behind each of these the loop goes on at once: a call of a model begins there."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of work. `key`: its name in the session; `parent`: span around it; `top`: top run, one trace.

    `seq`: where it begins; `end`: None while under way; `tokens`: the agent's own; `asked`, `came`: content."""

    key: str
    parent: str | None
    session: str
    top: str
    run: str
    kind: SpanKind
    agent: str
    start: str
    seq: int
    tool: str = ""
    call_id: str = ""
    model: str = ""
    answered_by: str = ""
    """The model that answered: another one than was asked for where a fallback stepped in."""
    end: str | None = None
    status: SpanStatus = "running"
    error: str = ""
    """Why it did not end well: the kind of the failure, the outcome of the call, or the status of the run."""
    tokens: Usage | None = None
    retries: int = 0
    asked: JsonValue = None
    came: JsonValue = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a tool under way."""

    key: str
    start: str
    seq: int
    event: ToolCallEvent


@dataclass(slots=True)
class _Run:
    """A run under way: its span, its open calls, and since when a model may be at work for it."""

    span: Span
    since: str
    since_seq: int
    driven: bool
    tools: dict[str, _Call] = field(default_factory=dict[str, _Call])
    handoffs: dict[str, str] = field(default_factory=dict[str, str])
    said: MessageEvent | None = None
    failure: str = ""
    retries: int = 0
    chats: int = 0


class SpanRecorder:
    """Makes the spans of one session: call it with each durable chunk, in order."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def __call__(self, chunk: Chunk) -> tuple[Span, ...]:
        """The spans that end by `chunk`, the inner ones first."""
        event, run = chunk.event, self._runs.get(chunk.run)
        if isinstance(event, RunStarted):
            if run is None:
                self._begin(chunk, event)
            return ()
        if run is None:
            return ()
        ended = self._step(run, chunk)
        if isinstance(event, WAITED_FOR):
            run.since, run.since_seq, run.retries = chunk.time, chunk.seq, 0
        return ended

    def go_on(self, time: str) -> None:
        """Resume the runs at `time`: the time of the pause belongs to no span."""
        for run in self._runs.values():
            run.since = time

    def under_way(self) -> tuple[Span, ...]:
        """The spans that have not ended, the outer ones first."""
        return tuple(
            span
            for run in self._runs.values()
            for span in (run.span, *(_tool(run, call) for call in run.tools.values()))
        )

    def _begin(self, chunk: Chunk, event: RunStarted) -> None:
        around = self._runs.get(chunk.parent or "")
        span = Span(
            key=chunk.run,
            parent=None if around is None else _caller(around, chunk.run),
            session=chunk.session,
            top=chunk.run if around is None else around.span.top,
            run=chunk.run,
            kind="agent",
            agent=chunk.agent,
            start=chunk.time,
            seq=chunk.seq,
            model=event.model,
            asked=event.prompt,
        )
        self._runs[chunk.run] = _Run(span, chunk.time, chunk.seq, event.driven)

    def _step(self, run: _Run, chunk: Chunk) -> tuple[Span, ...]:
        match chunk.event:
            case AgentStart(model=model) if model:
                run.span = replace(run.span, model=model)
            case MessageEvent(role="assistant", partial=False):
                run.said = chunk.event
            case Notice(attempt=attempt) if attempt:
                run.retries += 1
            case Usage():
                return _chat(run, chunk, chunk.event)
            case ToolCallEvent():
                call = chunk.event
                run.tools[call.id] = _Call(f"{chunk.run}/tool/{chunk.seq}", chunk.time, chunk.seq, call)
            case ToolResponse():
                return _answered(run, chunk, chunk.event)
            case HandoffStart(run=nested, call_id=call):
                run.handoffs[nested] = call.partition(":")[0]
            case Failure(kind=kind):
                run.failure = kind
                return _failed_call(run, chunk, kind)
            case AgentEnd(usage=usage):
                run.span = replace(run.span, tokens=usage)
            case RunFinished():
                del self._runs[chunk.run]
                return _finished(run, chunk, chunk.event)
            case _:
                pass
        return ()


def _caller(around: _Run, nested: str) -> str:
    """The span that a nested run belongs to: the call that began it, otherwise the run around it."""
    call = around.tools.get(around.handoffs.get(nested, ""))
    return around.span.key if call is None else call.key


def _chat(run: _Run, chunk: Chunk, used: Usage) -> tuple[Span, ...]:
    """The call of a model that `used` ends. A run that a state machine drives has replies that no model gave."""
    said, run.said = run.said, None
    if run.driven and not (used.model or used.prompt_tokens or used.completion_tokens):
        return ()
    return (_call_of_model(run, chunk, "ok", used=used, came=_reply(said)),)


def _call_of_model(
    run: _Run,
    chunk: Chunk,
    status: SpanStatus,
    error: str = "",
    used: Usage | None = None,
    came: JsonValue = None,
) -> Span:
    run.chats += 1
    around = run.span
    return Span(
        key=f"{around.run}/chat/{run.chats}",
        parent=around.key,
        session=around.session,
        top=around.top,
        run=around.run,
        kind="chat",
        agent=around.agent,
        start=run.since,
        seq=run.since_seq,
        model=around.model,
        answered_by="" if used is None else used.model,
        end=chunk.time,
        status=status,
        error=error,
        tokens=used,
        retries=run.retries,
        came=came,
    )


def _tool(
    run: _Run,
    call: _Call,
    end: str | None = None,
    status: SpanStatus = "running",
    error: str = "",
    came: JsonValue = None,
) -> Span:
    around = run.span
    return Span(
        key=call.key,
        parent=around.key,
        session=around.session,
        top=around.top,
        run=around.run,
        kind="tool",
        agent=around.agent,
        start=call.start,
        seq=call.seq,
        tool=call.event.tool,
        call_id=call.event.id,
        end=end,
        status=status,
        error=error,
        asked=call.event.args,
        came=came,
    )


def _failed_call(run: _Run, chunk: Chunk, kind: str) -> tuple[Span, ...]:
    """The call of a model that a failure of this kind ends, if one does."""
    ended = kind in OF_A_MODEL and not run.tools
    return (_call_of_model(run, chunk, "failed", kind),) if ended else ()


def _answered(run: _Run, chunk: Chunk, answer: ToolResponse) -> tuple[Span, ...]:
    call = run.tools.pop(answer.id, None)
    if call is None:
        return ()
    came = answer.data if answer.data is not None else answer.result
    if answer.ok:
        return (_tool(run, call, chunk.time, "ok", came=came),)
    status: SpanStatus = "cancelled" if answer.outcome == "cancelled" else "failed"
    return (_tool(run, call, chunk.time, status, answer.outcome, came),)


def _finished(run: _Run, chunk: Chunk, end: RunFinished) -> tuple[Span, ...]:
    left = tuple(_tool(run, call, chunk.time, "cancelled", "interrupted") for call in run.tools.values())
    ended = replace(run.span, end=chunk.time, came=end.text or None, tokens=run.span.tokens or end.usage)
    match end.status:
        case "completed":
            ended = replace(ended, status="ok")
        case "cancelled":
            ended = replace(ended, status="cancelled", error="cancelled")
        case _:
            ended = replace(ended, status="failed", error=run.failure or end.status)
    return (*left, ended)


def _reply(said: MessageEvent | None) -> JsonValue:
    """What a model answered: its text, and the calls that it wants."""
    if said is None:
        return None
    calls: list[JsonValue] = [{"tool": call.tool, "args": call.args} for call in said.calls]
    reply: JsonObject = {"text": said.text}
    return {**reply, "calls": calls} if calls else reply


def session_spans(chunks: Iterable[Chunk]) -> list[Span]:
    """The spans of a session by where they begin; those under way are the last that stand at their place."""
    record, found = SpanRecorder(), list[Span]()
    for chunk in chunks:
        found += record(chunk)
    return sorted((*found, *record.under_way()), key=lambda span: (span.seq, _DEPTH[span.kind]))


_DEPTH = {"agent": 0, "chat": 1, "tool": 2}
