"""The trace of a session for a view of it: agents, calls of models and tools, with their tokens, cost and time."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Wire
from daiku.domain.messages import Usage
from daiku.domain.sessions import Session


class TraceSpan(Wire):
    """One stretch of work. `parent` is the key of the span around it, absent for what the person started; `seq` is where
    it begins in the session. `duration_ms` is absent while it is under way. `usage` is what an agent used itself
    so far, or a call of a model; `error` says why it did not end well."""

    key: str
    parent: str | None = None
    kind: Literal["agent", "chat", "tool"]
    name: str
    """Of an agent, a model, a tool."""
    run: str
    call_id: str = ""
    seq: int
    start: str
    duration_ms: int | None = None
    status: Literal["running", "ok", "failed", "cancelled"]
    error: str = ""
    usage: Usage | None = None
    retries: int = 0


class TraceResult(Wire):
    """The spans by where they begin. `until` is when the last of them ended, or now."""

    session: Session
    spans: tuple[TraceSpan, ...]
    until: str
