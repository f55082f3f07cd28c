"""Wire types of sessions: lists, chunks, forks, exports, file changes, traces, saved permissions."""

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
    """With `last`: about this many of the last chunks (before `beforeSeq`, if given), starting at a message.

    Without: all after `afterSeq`.
    """

    after_seq: Annotated[int, Field(ge=0)] = 0
    last: Annotated[int, Field(ge=1, le=10_000)] | None = None
    before_seq: Annotated[int, Field(ge=1)] | None = None


class ChunkRecord(Wire):
    """A chunk as stored and sent; `type` selects the model of `data` in `daiku.domain.events.EVENTS`."""

    seq: int
    seq_from: int | None = None
    """Set if one chunk combines the adjacent deltas `seqFrom`…`seq` (a slow client)."""
    time: str
    session: str
    run: str
    parent: str | None = None
    agent: str
    type: str
    data: JsonObject


class EarlierChunks(Wire):
    """Chunks before a window: their number (before `beforeSeq`) and their usage."""

    before_seq: int
    count: int
    usage: Usage


class SessionGetResult(Wire):
    session: Session
    chunks: tuple[ChunkRecord, ...]
    earlier: EarlierChunks | None = None
    """Only with `last`: None if the window reaches back to the beginning."""


class SessionForkParams(SessionRef):
    at_seq: Annotated[int, Field(ge=0)]
    restore_files: bool = False
    """Restore the files that the session changed after that point."""


ExportFormat = Literal["markdown", "json", "jsonl", "trace"]


class SessionExportParams(SessionRef):
    format: ExportFormat = "markdown"


class ChangeHunk(Wire):
    """Adjacent changed lines. Lines count from 1; a side without lines names the line before it.

    `text` contains only the changed lines, each with `-` or `+` (and git's note on a missing newline at the
    end). `touched`: the user changed its lines since; rejecting the complete file skips it.
    """

    hunk_id: str
    """Depends on the lines of the hunk only, not on the rest of the file."""
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    text: str
    state: Literal["open", "accepted"] = "open"
    touched: bool = False


class ChangedFile(Wire):
    """A file that a session changed and that is not decided yet.

    `before` is its old name if it was renamed. A file without hunks (empty, binary, only renamed) is decided
    as a unit.
    """

    session_id: str
    path: str
    kind: FileKind
    added: int
    removed: int
    hunks: tuple[ChangeHunk, ...]
    before: str | None = None
    binary: bool = False


class ChangesParams(Wire):
    """Without `sessionId`: changes of every session of this folder; a file is listed once per session."""

    session_id: str | None = None


class ChangesResult(Wire):
    files: tuple[ChangedFile, ...]
    checkpoint_id: str | None = None
    """After a rejection: the checkpoint that restores what was rejected."""


class DecideParams(SessionRef):
    """A decision. Without `path`: all files; without `hunkIds`: the complete file."""

    decision: ReviewDecision
    path: str | None = None
    hunk_ids: tuple[str, ...] | None = None


class OriginalParams(SessionRef):
    path: str


class OriginalResult(Wire):
    text: str | None
    """The text before the changes; None if there was no file, or it is not text."""


class CheckpointRef(Wire):
    checkpoint_id: Id


class RestoreResult(Wire):
    """Restored files. `checkpointId` is the checkpoint for redo."""

    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...] = ()
    checkpoint_id: str | None = None


class TraceSpan(Wire):
    """A span of a trace.

    `parent` is the key of the outer span, absent at the top. `seq` is its first chunk. `duration_ms` is
    absent while it is running. `usage` is an agent's own usage so far, or that of a model call. `error` says
    why it failed.
    """

    key: str
    parent: str | None = None
    kind: Literal["agent", "chat", "tool"]
    name: str
    """Name of the agent, model, or tool."""
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
    """Spans in the order of their start. `until` is the end of the last span, or now."""

    session: Session
    spans: tuple[TraceSpan, ...]
    until: str


class Grant(Localizable):
    """A saved permission. `what` describes it; `key` identifies it for `daiku/grants/revoke`."""

    key: str
    answer: Literal["allow", "reject"]
    what: Text


class GrantsResult(Localizable):
    grants: tuple[Grant, ...]
    workspace: str
    """The folder that the permissions apply to."""


class GrantRef(Wire):
    key: str
