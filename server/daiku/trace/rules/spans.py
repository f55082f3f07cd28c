"""Spans of a session: one for each agent's run, model call, and tool call."""

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

MODEL_FAILURES = frozenset(
    (
        *("auth", "rate_limit", "timeout", "connection", "overloaded", "bad_request", "not_found"),
        *("no_provider", "context_overflow", "stream_cut", "content_filter", "format"),
    )
)
"""Kinds of failures that end a model call."""
MODEL_CALL_STARTS = (
    AgentStart,
    ToolResponse,
    HandoffEnd,
    ApprovalGiven,
    InputGiven,
    Compacted,
    RunStarted,
    Usage,
)
"""Events after which the loop continues immediately, so that a model call starts there."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span of work.

    `key`: its id in the session. `parent`: key of the outer span. `top`: top-level run, one trace. `seq`: seq
    of its start. `end`: None while open. `tokens`: the agent's own. `input`, `output`: content.
    """

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
    """The model that answered; another one than requested after a fallback."""
    end: str | None = None
    status: SpanStatus = "running"
    error: str = ""
    """Why it failed: the kind of the failure, the outcome of the call, or the status of the run."""
    tokens: Usage | None = None
    retries: int = 0
    input: JsonValue = None
    output: JsonValue = None


@dataclass(frozen=True, slots=True)
class _Call:
    """An open tool call."""

    key: str
    start: str
    seq: int
    event: ToolCallEvent


@dataclass(slots=True)
class _Run:
    """An open run: its span, its open calls, and the earliest start of its next model call."""

    span: Span
    since: str
    since_seq: int
    driven: bool
    tools: dict[str, _Call] = field(default_factory=dict[str, _Call])
    handoffs: dict[str, str] = field(default_factory=dict[str, str])
    reply: MessageEvent | None = None
    failure: str = ""
    retries: int = 0
    chats: int = 0


class SpanRecorder:
    """Builds the spans of one session; call it with each durable chunk, in order."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def __call__(self, chunk: Chunk) -> tuple[Span, ...]:
        """Return the spans that `chunk` ends, inner ones first."""
        event, run = chunk.event, self._runs.get(chunk.run)
        if isinstance(event, RunStarted):
            if run is None:
                self._begin(chunk, event)
            return ()
        if run is None:
            return ()
        spans = self._step(run, chunk)
        if isinstance(event, MODEL_CALL_STARTS):
            run.since, run.since_seq, run.retries = chunk.time, chunk.seq, 0
        return spans

    def resume(self, time: str) -> None:
        """Resume the runs at `time`; the pause belongs to no span."""
        for run in self._runs.values():
            run.since = time

    def open_spans(self) -> tuple[Span, ...]:
        """Return the open spans, outer ones first."""
        return tuple(
            span
            for run in self._runs.values()
            for span in (run.span, *(_build_tool_span(run, call) for call in run.tools.values()))
        )

    def _begin(self, chunk: Chunk, event: RunStarted) -> None:
        parent = self._runs.get(chunk.parent or "")
        span = Span(
            key=chunk.run,
            parent=None if parent is None else _parent_key(parent, chunk.run),
            session=chunk.session,
            top=chunk.run if parent is None else parent.span.top,
            run=chunk.run,
            kind="agent",
            agent=chunk.agent,
            start=chunk.time,
            seq=chunk.seq,
            model=event.model,
            input=event.prompt,
        )
        self._runs[chunk.run] = _Run(span, chunk.time, chunk.seq, event.driven)

    def _step(self, run: _Run, chunk: Chunk) -> tuple[Span, ...]:
        match chunk.event:
            case AgentStart(model=model) if model:
                run.span = replace(run.span, model=model)
            case MessageEvent(role="assistant", partial=False):
                run.reply = chunk.event
            case Notice(attempt=attempt) if attempt:
                run.retries += 1
            case Usage():
                return _end_model_call(run, chunk, chunk.event)
            case ToolCallEvent():
                call = chunk.event
                run.tools[call.id] = _Call(f"{chunk.run}/tool/{chunk.seq}", chunk.time, chunk.seq, call)
            case ToolResponse():
                return _end_tool_call(run, chunk, chunk.event)
            case HandoffStart(run=nested, call_id=call):
                run.handoffs[nested] = call.partition(":")[0]
            case Failure(kind=kind):
                run.failure = kind
                return _fail_model_call(run, chunk, kind)
            case AgentEnd(usage=usage):
                run.span = replace(run.span, tokens=usage)
            case RunFinished():
                del self._runs[chunk.run]
                return _end_run(run, chunk, chunk.event)
            case _:
                pass
        return ()


def _parent_key(parent: _Run, nested: str) -> str:
    """Return the key of a nested run's parent span: the call that started it, else the outer run."""
    call = parent.tools.get(parent.handoffs.get(nested, ""))
    return parent.span.key if call is None else call.key


def _end_model_call(run: _Run, chunk: Chunk, usage: Usage) -> tuple[Span, ...]:
    """Return the span of the model call that `used` ends; none for replies of a state machine."""
    reply, run.reply = run.reply, None
    if run.driven and not (usage.model or usage.prompt_tokens or usage.completion_tokens):
        return ()
    return (_build_chat_span(run, chunk, "ok", usage=usage, output=_reply_content(reply)),)


def _build_chat_span(
    run: _Run,
    chunk: Chunk,
    status: SpanStatus,
    error: str = "",
    usage: Usage | None = None,
    output: JsonValue = None,
) -> Span:
    run.chats += 1
    run_span = run.span
    return Span(
        key=f"{run_span.run}/chat/{run.chats}",
        parent=run_span.key,
        session=run_span.session,
        top=run_span.top,
        run=run_span.run,
        kind="chat",
        agent=run_span.agent,
        start=run.since,
        seq=run.since_seq,
        model=run_span.model,
        answered_by="" if usage is None else usage.model,
        end=chunk.time,
        status=status,
        error=error,
        tokens=usage,
        retries=run.retries,
        output=output,
    )


def _build_tool_span(
    run: _Run,
    call: _Call,
    end: str | None = None,
    status: SpanStatus = "running",
    error: str = "",
    output: JsonValue = None,
) -> Span:
    run_span = run.span
    return Span(
        key=call.key,
        parent=run_span.key,
        session=run_span.session,
        top=run_span.top,
        run=run_span.run,
        kind="tool",
        agent=run_span.agent,
        start=call.start,
        seq=call.seq,
        tool=call.event.tool,
        call_id=call.event.id,
        end=end,
        status=status,
        error=error,
        input=call.event.args,
        output=output,
    )


def _fail_model_call(run: _Run, chunk: Chunk, kind: str) -> tuple[Span, ...]:
    """Return the span of the model call that a failure of this kind ends, if any."""
    is_model_failure = kind in MODEL_FAILURES and not run.tools
    return (_build_chat_span(run, chunk, "failed", kind),) if is_model_failure else ()


def _end_tool_call(run: _Run, chunk: Chunk, answer: ToolResponse) -> tuple[Span, ...]:
    call = run.tools.pop(answer.id, None)
    if call is None:
        return ()
    output = answer.data if answer.data is not None else answer.result
    if answer.ok:
        return (_build_tool_span(run, call, chunk.time, "ok", output=output),)
    status: SpanStatus = "cancelled" if answer.outcome == "cancelled" else "failed"
    return (_build_tool_span(run, call, chunk.time, status, answer.outcome, output),)


def _end_run(run: _Run, chunk: Chunk, end: RunFinished) -> tuple[Span, ...]:
    open_calls = tuple(
        _build_tool_span(run, call, chunk.time, "cancelled", "interrupted") for call in run.tools.values()
    )
    span = replace(run.span, end=chunk.time, output=end.text or None, tokens=run.span.tokens or end.usage)
    match end.status:
        case "completed":
            span = replace(span, status="ok")
        case "cancelled":
            span = replace(span, status="cancelled", error="cancelled")
        case _:
            span = replace(span, status="failed", error=run.failure or end.status)
    return (*open_calls, span)


def _reply_content(message: MessageEvent | None) -> JsonValue:
    """Return a model's reply as content: its text and its calls."""
    if message is None:
        return None
    calls: list[JsonValue] = [{"tool": call.tool, "args": call.args} for call in message.calls]
    content: JsonObject = {"text": message.text}
    return {**content, "calls": calls} if calls else content


def session_spans(chunks: Iterable[Chunk]) -> list[Span]:
    """Return the spans of a session, ordered by their starts, including open ones."""
    record, spans = SpanRecorder(), list[Span]()
    for chunk in chunks:
        spans += record(chunk)
    return sorted((*spans, *record.open_spans()), key=lambda span: (span.seq, _DEPTH[span.kind]))


_DEPTH = {"agent": 0, "chat": 1, "tool": 2}
