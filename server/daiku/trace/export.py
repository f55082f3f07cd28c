"""The trace: a session's chunks as one JSON line per agent, tool and handoff, with tokens and times."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk
from daiku.domain.events import HandoffEnd, HandoffStart, RunFinished, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.messages import Usage

TraceKind = Literal["agent_start", "tool_start", "tool_end", "handoff_start", "handoff_end", "agent_end"]
TRACED = frozenset(
    kind.type
    for kind in (RunStarted, Usage, ToolCallEvent, ToolResponse, HandoffStart, HandoffEnd, RunFinished)
)
RESULT_LIMIT = 2000
"""Characters of a result that a trace line keeps; the journal has all of it."""


class TraceLine(Frozen):
    """One line (PROTOCOL 5). Tokens are those of the agent so far; `duration_ms` of the whole span."""

    event: TraceKind
    time: str
    session: str
    agent: str
    tool: str | None = None
    tok_prompt: int = 0
    tok_completion: int = 0
    duration_ms: int = 0
    result: str | None = None


@dataclass(slots=True)
class _Span:
    """A run of an agent under way."""

    agent: str
    since: str
    prompt: int = 0
    completion: int = 0
    handoffs: dict[str, str] = field(default_factory=dict[str, str])


class TraceRecorder:
    """The trace of runs as their chunks go by: call it with each one, in order."""

    def __init__(self) -> None:
        self.lines: list[TraceLine] = []
        self._spans: dict[str, _Span] = {}

    def __call__(self, chunk: Chunk) -> None:
        if chunk.event.type in TRACED and (line := _line(chunk, self._spans)) is not None:
            self.lines.append(line)

    def append_to(self, folder: Path, session: str) -> None:
        """Add the lines to `folder`/`session`.jsonl and forget them. Raises OSError."""
        _write(folder / f"{session}.jsonl", _jsonl(self.lines), os.O_APPEND)
        self.lines = []


def trace_lines(chunks: Iterable[Chunk]) -> list[TraceLine]:
    """The trace of a session, in the order of its chunks. A run is a span of its agent."""
    tracing = TraceRecorder()
    for chunk in chunks:
        tracing(chunk)
    return tracing.lines


def _line(chunk: Chunk, spans: dict[str, _Span]) -> TraceLine | None:
    event, span = chunk.event, spans.get(chunk.run)
    match event:
        case RunStarted():
            if span is not None:
                return None
            spans[chunk.run] = _Span(chunk.agent, chunk.time)
            return _made(chunk, "agent_start", spans[chunk.run])
        case Usage():
            if span is not None:
                span.prompt += event.prompt_tokens
                span.completion += event.completion_tokens
            return None
        case ToolCallEvent(tool=tool):
            return _made(chunk, "tool_start", span, tool=tool)
        case ToolResponse(tool=tool, result=result, duration_ms=took):
            return _made(chunk, "tool_end", span, tool=tool, result=result, took=took)
        case HandoffStart(to=to, request=request):
            if span is not None:
                span.handoffs[to] = chunk.time
            return _made(chunk, "handoff_start", span, tool=to, result=request)
        case HandoffEnd(to=to, source=source, result=result):
            since = (span.handoffs.pop(to, "") or span.handoffs.pop(source, "")) if span else ""
            return _made(chunk, "handoff_end", span, tool=to, result=result, took=_between(since, chunk.time))
        case RunFinished(text=text, status=status):
            spans.pop(chunk.run, None)
            took = _between(span.since, chunk.time) if span else 0
            return _made(chunk, "agent_end", span, result=text or status, took=took)
        case _:
            return None


def _made(
    chunk: Chunk, kind: TraceKind, span: _Span | None, *, tool: str = "", result: str = "", took: int = 0
) -> TraceLine:
    return TraceLine(
        event=kind,
        time=chunk.time,
        session=chunk.session,
        agent=chunk.agent,
        tool=tool or None,
        tok_prompt=span.prompt if span else 0,
        tok_completion=span.completion if span else 0,
        duration_ms=took,
        result=result[:RESULT_LIMIT] or None,
    )


def as_jsonl(chunks: Iterable[Chunk]) -> str:
    """The trace as JSON Lines; every line has every key."""
    return _jsonl(trace_lines(chunks))


def write_trace(home: Path, session: str, chunks: Iterable[Chunk]) -> Path:
    """Write `home`/traces/`session`.jsonl anew; the file. Raises OSError."""
    path = home / "traces" / f"{session}.jsonl"
    _write(path, as_jsonl(chunks), os.O_TRUNC)
    return path


def forget_trace(folder: Path, session: str) -> None:
    """Delete `folder`/`session`.jsonl, where it is. Raises OSError."""
    (folder / f"{session}.jsonl").unlink(missing_ok=True)


def _jsonl(lines: Iterable[TraceLine]) -> str:
    return "".join(
        json.dumps(line.model_dump(), ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
    )


def _write(path: Path, text: str, how: int) -> None:
    """The file is readable by its owner only, whatever the umask."""
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | how, 0o600)
    with os.fdopen(handle, "wb") as file:
        path.chmod(0o600)
        file.write(text.encode("utf-8", "replace"))


def _between(since: str, until: str) -> int:
    """Milliseconds between two times of chunks; 0 where one is missing."""
    try:
        return max(
            0, round((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds() * 1000)
        )
    except ValueError:
        return 0
