"""A chunk as a row of the journal's table, and back."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import ValidationError

from daiku.domain.chunks import Chunk, decode_event
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import Event

INSERT = "INSERT INTO chunks VALUES(?,?,?,?,?,?,?,?)"
READ = "SELECT seq, time, run, parent, agent, type, data FROM chunks"

Row: TypeAlias = tuple[str, int, str, str, str | None, str, str, str]
"""A chunk as INSERT stores it."""
Read: TypeAlias = tuple[int, str, str, str | None, str, str, str]
"""A chunk as READ finds it; its session is known."""


def row_of(c: Chunk) -> Row:
    """`c` as the values of INSERT."""
    return (c.session, c.seq, c.time, c.run, c.parent, c.agent, c.event.type, c.data)


def chunk_of(session: str, row: Read) -> Chunk:
    """The chunk of `session` that `row` holds. Raises DaikuError where it is none."""
    seq, time, run, parent, agent, type_, data = row
    return Chunk(seq, time, session, run, agent, event_of(type_, data), data, parent)


def event_of(type_: str, data: str) -> Event:
    """The stored event. Raises DaikuError where it is none."""
    try:
        return decode_event(type_, data)
    except (KeyError, ValidationError) as wrong:
        message = (
            "A record of this conversation cannot be read: it is damaged, or of another version of Daiku."
        )
        hint = "Bring back a copy of daiku.db, or delete the conversation; the others are not touched."
        raise DaikuError(Failure(kind="internal", message=message, hint=hint)) from wrong
