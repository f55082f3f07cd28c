"""Conversations over the wire: lists, chunks of the past, forks, exports."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from daiku.api.base import Id
from daiku.domain.base import JsonObject, Wire
from daiku.domain.messages import Usage
from daiku.domain.sessions import Session


class SessionNewParams(Wire):
    title: str | None = None


class SessionListParams(Wire):
    query: str | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class SessionListResult(Wire):
    sessions: tuple[Session, ...]


class SessionRef(Wire):
    session_id: Id


class SessionGetParams(SessionRef):
    """With `last` about so many of the last chunks (below `beforeSeq`, where that is given), from the start of a
    message on; else everything after `afterSeq`."""

    after_seq: Annotated[int, Field(ge=0)] = 0
    last: Annotated[int, Field(ge=1, le=10_000)] | None = None
    before_seq: Annotated[int, Field(ge=1)] | None = None


class ChunkRecord(Wire):
    """A Chunk as it is stored and sent; `data` by `type` in `daiku.domain.events.EVENTS`."""

    seq: int
    seq_from: int | None = None
    """Set where one chunk stands for the adjacent deltas `seqFrom`…`seq` (a slow client)."""
    time: str
    session: str
    run: str
    parent: str | None = None
    agent: str
    type: str
    data: JsonObject


class EarlierChunks(Wire):
    """What a window left out: how many chunks lie below `beforeSeq`, and what was used in them."""

    before_seq: int
    count: int
    usage: Usage


class SessionGetResult(Wire):
    session: Session
    chunks: tuple[ChunkRecord, ...]
    earlier: EarlierChunks | None = None
    """Only of a window (`last`): None where it reaches back to the beginning."""


class SessionForkParams(SessionRef):
    at_seq: Annotated[int, Field(ge=0)]
    restore_files: bool = False
    """Bring back the files that the session changed after that point, as they were then."""


ExportFormat = Literal["markdown", "json", "jsonl", "trace"]


class SessionExportParams(SessionRef):
    format: ExportFormat = "markdown"
