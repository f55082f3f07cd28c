"""A session's chunks as trace lines: one for the beginning and the end of each agent, tool and handoff."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    AgentEnd,
    HandoffEnd,
    HandoffStart,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import Usage
from daiku.trace.rules.bounded import bounded

TraceKind = Literal["agent_start", "tool_start", "tool_end", "handoff_start", "handoff_end", "agent_end"]


class TraceLine(Frozen):
    """One line (PROTOCOL 5). Tokens: the agent's own so far; `duration_ms`: of the agent, tool, or handoff;
    `result`: the tool's data, else its text."""

    event: TraceKind
    time: str
    session: str
    agent: str
    tool: str | None = None
    tok_prompt: int = 0
    tok_completion: int = 0
    duration_ms: int = 0
    result: JsonValue = None

    def jsonl(self) -> str:
        """The line with every key, ended by a line feed."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":")) + "\n"


@dataclass(slots=True)
class _Running:
    """An agent at work: since when, its tokens so far, and its handoffs that are under way."""

    agent: str
    since: str
    prompt: int = 0
    completion: int = 0
    handoffs: dict[str, str] = field(default_factory=dict[str, str])


class LineRecorder:
    """Makes the lines of one session: call it with each chunk, in order."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __call__(self, chunk: Chunk) -> TraceLine | None:
        """The line that `chunk` makes, if it makes one."""
        event, running = chunk.event, self._running.get(chunk.run)
        match event:
            case RunStarted():
                if running is not None:
                    return None
                self._running[chunk.run] = running = _Running(chunk.agent, chunk.time)
                return _line(chunk, "agent_start", running)
            case Usage():
                if running is not None:
                    running.prompt += event.prompt_tokens
                    running.completion += event.completion_tokens
                return None
            case AgentEnd(usage=usage):  # the sum on record, also where its parts were not seen
                if running is not None:
                    running.prompt, running.completion = usage.prompt_tokens, usage.completion_tokens
                return None
            case RunFinished(text=text, status=status):
                self._running.pop(chunk.run, None)
                took = milliseconds(running.since, chunk.time) if running else 0
                return _line(chunk, "agent_end", running, result=text or status, took=took)
            case _:
                return _call_line(chunk, running)


def _call_line(chunk: Chunk, running: _Running | None) -> TraceLine | None:
    """The line of a tool or handoff."""
    match chunk.event:
        case ToolCallEvent(tool=tool):
            return _line(chunk, "tool_start", running, tool=tool)
        case ToolResponse(tool=tool, result=text, data=data, duration_ms=took):
            given = data if data is not None else text
            return _line(chunk, "tool_end", running, tool=tool, result=given, took=took)
        case HandoffStart(to=to, request=request, run=run):
            if running is not None:
                running.handoffs[run or to] = chunk.time
            return _line(chunk, "handoff_start", running, tool=to, result=request)
        case HandoffEnd(to=to, run=run, result=text, handover=handover):
            since = running.handoffs.pop(run or to, "") if running is not None else ""
            given = text if handover is None else handover.model_dump(mode="json", exclude_none=True)
            took = milliseconds(since, chunk.time)
            return _line(chunk, "handoff_end", running, tool=to, result=given, took=took)
        case _:
            return None


def _line(
    chunk: Chunk,
    kind: TraceKind,
    running: _Running | None,
    *,
    tool: str = "",
    result: JsonValue = None,
    took: int = 0,
) -> TraceLine:
    return TraceLine(
        event=kind,
        time=chunk.time,
        session=chunk.session,
        agent=chunk.agent,
        tool=tool or None,
        tok_prompt=running.prompt if running else 0,
        tok_completion=running.completion if running else 0,
        duration_ms=took,
        result=None if result == "" else bounded(result),
    )


def trace_lines(chunks: Iterable[Chunk]) -> list[TraceLine]:
    """The trace of a session, in the order of its chunks."""
    record = LineRecorder()
    return [line for chunk in chunks if (line := record(chunk)) is not None]


def as_jsonl(chunks: Iterable[Chunk]) -> str:
    """The trace as JSON Lines; every line has every key."""
    return "".join(line.jsonl() for line in trace_lines(chunks))


def milliseconds(since: str, until: str) -> int:
    """Milliseconds between two times of chunks; 0 where one is missing."""
    try:
        return max(
            0, round((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds() * 1000)
        )
    except ValueError:
        return 0
