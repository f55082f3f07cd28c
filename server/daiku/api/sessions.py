"""Sessions over the wire: lists, chunks, forks, exports, the changes to files, traces, saved permissions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from daiku.api.base import Id
from daiku.domain.base import JsonObject, Localizable, Wire
from daiku.domain.messages import Usage
from daiku.domain.sessions import Session
from daiku.domain.work.patches import FileKind, FileStat, Irrevocable, ReviewDecision
from daiku.texts.text import Text


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


class ChangeHunk(Wire):
    """Adjacent lines that changed. Lines count from 1; a side without lines names the line before it.

    `text` is the changed lines alone, with `-` or `+` before each (git's note where the last line has
    no end). `touched`: the person changed lines of it since; rejecting a whole file leaves it.
    """

    hunk_id: str
    """Changes with the lines themselves, not with what happens elsewhere in the file."""
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    text: str
    state: Literal["open", "accepted"] = "open"
    touched: bool = False


class ChangedFile(Wire):
    """One file that a session changed and that is not decided on yet. `before` is its old name where it
    was renamed. A file without hunks (empty, binary, only renamed) is decided on as a whole."""

    session_id: str
    path: str
    kind: FileKind
    added: int
    removed: int
    hunks: tuple[ChangeHunk, ...]
    before: str | None = None
    binary: bool = False


class ChangesParams(Wire):
    """Without `sessionId` those of every session about this folder: a file stands there once for each that
    changed it."""

    session_id: str | None = None


class ChangesResult(Wire):
    files: tuple[ChangedFile, ...]
    checkpoint_id: str | None = None
    """After a rejection: restoring this brings back what was rejected."""


class DecideParams(SessionRef):
    """Without `path` all files, without `hunkIds` the whole file."""

    decision: ReviewDecision
    path: str | None = None
    hunk_ids: tuple[str, ...] | None = None


class OriginalParams(SessionRef):
    path: str


class OriginalResult(Wire):
    text: str | None
    """The text against which the present one is shown; None where there was no file, or no text."""


class CheckpointRef(Wire):
    checkpoint_id: Id


class RestoreResult(Wire):
    """`checkpointId` brings back what was there before restoring (redo)."""

    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...] = ()
    checkpoint_id: str | None = None


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


class Grant(Localizable):
    """`what` says in words what was answered; `key` names it to `daiku/grants/revoke`."""

    key: str
    answer: Literal["allow", "reject"]
    what: Text


class GrantsResult(Localizable):
    grants: tuple[Grant, ...]
    workspace: str
    """The folder that the answers count in."""


class GrantRef(Wire):
    key: str
