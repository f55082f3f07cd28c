"""What a session changed, decided on file by file and hunk by hunk; bringing files back."""

from __future__ import annotations

from typing import Literal

from daiku.api.base import Id
from daiku.api.sessions import SessionRef
from daiku.domain.base import Wire
from daiku.domain.work.patches import FileKind, FileStat, Irrevocable, ReviewDecision


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
