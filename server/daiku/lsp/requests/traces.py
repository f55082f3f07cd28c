"""The wire method that shows what a session did, and what that took: from the journal alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from daiku import api
from daiku.core.traces.lines import milliseconds
from daiku.core.traces.spans import Span, session_spans
from daiku.domain.chunks import Chunk, iso_now
from daiku.domain.sessions import Session
from daiku.lsp.connection import ClientConnection


async def trace_get(c: ClientConnection, p: api.SessionRef) -> api.TraceResult:
    journal = (await c.app()).journal
    session = journal.get_session(p.session_id)
    return await asyncio.to_thread(_shown, session, journal.chunks(p.session_id))


def _shown(session: Session, chunks: Sequence[Chunk]) -> api.TraceResult:
    spans = session_spans(chunks)
    running = session.status in ("running", "waiting")
    until = iso_now() if running else max((span.end or span.start for span in spans), default="")
    return api.TraceResult(session=session, spans=tuple(_span(span, running) for span in spans), until=until)


def _span(span: Span, running: bool) -> api.TraceSpan:
    """What no process works at is not under way: it was interrupted, or waits to be gone on with."""
    left = span.status == "running" and not running
    return api.TraceSpan(
        key=span.key,
        parent=span.parent,
        kind=span.kind,
        name={"agent": span.agent, "chat": span.answered_by or span.model, "tool": span.tool}[span.kind],
        run=span.run,
        call_id=span.call_id,
        seq=span.seq,
        start=span.start,
        duration_ms=None if span.end is None else milliseconds(span.start, span.end),
        status="cancelled" if left else span.status,
        error="interrupted" if left else span.error,
        usage=span.tokens,
        retries=span.retries,
    )
