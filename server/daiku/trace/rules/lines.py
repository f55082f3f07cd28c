"""Trace lines of a session: one for the start and the end of each agent, tool, and hand-off."""

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
from daiku.trace.rules.genai import truncate_json

TraceKind = Literal["agent_start", "tool_start", "tool_end", "handoff_start", "handoff_end", "agent_end"]


class TraceLine(Frozen):
    """One line of a trace.

    Tokens: the agent's own so far. `duration_ms`: of the agent, tool, or hand-off. `result`: the tool's data,
    else its text.
    """

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
        """Return the line as JSON with every key, with a line feed."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":")) + "\n"


@dataclass(slots=True)
class _RunningAgent:
    """A running agent: its start time, its tokens so far, and its open hand-offs."""

    agent: str
    since: str
    prompt: int = 0
    completion: int = 0
    handoffs: dict[str, str] = field(default_factory=dict[str, str])


class LineRecorder:
    """Builds the lines of one session; call it with each chunk, in order."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[str, _RunningAgent] = {}

    def __call__(self, chunk: Chunk) -> TraceLine | None:
        """Return the line for `chunk`, if any."""
        event, running = chunk.event, self._running.get(chunk.run)
        match event:
            case RunStarted():
                if running is not None:
                    return None
                self._running[chunk.run] = running = _RunningAgent(chunk.agent, chunk.time)
                return _build_line(chunk, "agent_start", running)
            case Usage():
                if running is not None:
                    running.prompt += event.prompt_tokens
                    running.completion += event.completion_tokens
                return None
            case AgentEnd(usage=usage):  # the recorded sum, in case some usage was missed
                if running is not None:
                    running.prompt, running.completion = usage.prompt_tokens, usage.completion_tokens
                return None
            case RunFinished(text=text, status=status):
                self._running.pop(chunk.run, None)
                duration_ms = milliseconds_between(running.since, chunk.time) if running else 0
                return _build_line(
                    chunk, "agent_end", running, result=text or status, duration_ms=duration_ms
                )
            case _:
                return _call_line(chunk, running)


def _call_line(chunk: Chunk, running: _RunningAgent | None) -> TraceLine | None:
    """Return the line of a tool or hand-off, if any."""
    match chunk.event:
        case ToolCallEvent(tool=tool):
            return _build_line(chunk, "tool_start", running, tool=tool)
        case ToolResponse(tool=tool, result=text, data=data, duration_ms=duration_ms):
            result = data if data is not None else text
            return _build_line(chunk, "tool_end", running, tool=tool, result=result, duration_ms=duration_ms)
        case HandoffStart(to=to, request=request, run=run):
            if running is not None:
                running.handoffs[run or to] = chunk.time
            return _build_line(chunk, "handoff_start", running, tool=to, result=request)
        case HandoffEnd(to=to, run=run, result=text, handover=handover):
            since = running.handoffs.pop(run or to, "") if running is not None else ""
            result = text if handover is None else handover.model_dump(mode="json", exclude_none=True)
            duration_ms = milliseconds_between(since, chunk.time)
            return _build_line(chunk, "handoff_end", running, tool=to, result=result, duration_ms=duration_ms)
        case _:
            return None


def _build_line(
    chunk: Chunk,
    kind: TraceKind,
    running: _RunningAgent | None,
    *,
    tool: str = "",
    result: JsonValue = None,
    duration_ms: int = 0,
) -> TraceLine:
    return TraceLine(
        event=kind,
        time=chunk.time,
        session=chunk.session,
        agent=chunk.agent,
        tool=tool or None,
        tok_prompt=running.prompt if running else 0,
        tok_completion=running.completion if running else 0,
        duration_ms=duration_ms,
        result=None if result == "" else truncate_json(result),
    )


def trace_lines(chunks: Iterable[Chunk]) -> list[TraceLine]:
    """Return the trace of a session, in the order of its chunks."""
    record = LineRecorder()
    return [line for chunk in chunks if (line := record(chunk)) is not None]


def as_jsonl(chunks: Iterable[Chunk]) -> str:
    """Return the trace as JSON Lines; every line has every key."""
    return "".join(line.jsonl() for line in trace_lines(chunks))


def milliseconds_between(since: str, until: str) -> int:
    """Return the milliseconds_between between two chunk times; 0 if one is missing."""
    try:
        return max(
            0, round((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds() * 1000)
        )
    except ValueError:
        return 0
