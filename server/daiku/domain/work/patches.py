"""Patches, change maps, and reviews, with the effects that an undo cannot revert."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from daiku.domain.base import Frozen, Wire
from daiku.domain.runs import Range


class SearchReplace(Frozen):
    """Replace the one occurrence of `search`, or all occurrences with `replace_all`."""

    search: str = Field(description="as it stands there, once")
    replace: str = Field(description="text in its place")
    replace_all: bool = Field(default=False, description="every place, not just one")


FileKind = Literal["create", "edit", "delete", "rename"]


class FileChange(Frozen):
    """A change of one file.

    `old` is the text before (None: no file), `new` the text after (None: deleted). A rename has `to`. Paths
    are relative, with `/`.
    """

    path: str
    kind: FileKind
    old: str | None = None
    new: str | None = None
    to: str | None = None


class Patch(Frozen):
    """All file changes of one tool call, applied atomically."""

    files: tuple[FileChange, ...]


class FileStat(Wire):
    """Number of added and removed lines of a changed file."""

    path: str
    kind: FileKind
    added: int = 0
    removed: int = 0


class ChangeOp(StrEnum):
    """Operation of a change (R1.94)."""

    insert = "insert"
    delete = "delete"
    replace = "replace"  # pyright: ignore[reportAssignmentType]  # the member is named by R1.94; it hides str.replace on purpose


class Change(Wire):
    """One change of a change map (R1.95).

    `start` and `end` are code points of the OLD text, half-open, sorted, without overlap (C1.8). An insert
    has `end == start` and a `text`, a delete no text, a replace both.
    """

    op: ChangeOp
    start: int
    end: int
    text: str | None = None


class PatchJSON(Wire):
    """A new text and its change map (R1.96): applying `change_map` to the old text gives `new_text`."""

    new_text: str
    change_map: tuple[Change, ...] = ()


class MergedPatch(PatchJSON):
    """Two merged patches of one text; `dropped` are changes of the second that conflict with the first (C1.9)."""

    dropped: tuple[Change, ...] = ()


class RangeEdit(Wire):
    """A change by line and character of the old text, in the negotiated position encoding."""

    range: Range
    new_text: str


class Issue(Wire):
    """A problem in a text with its replacement.

    Its position is `start` and `end` (code points, half-open), or the only occurrence of `quote`; with both,
    they must agree.
    """

    replacement: str
    quote: str = ""
    start: int | None = None
    end: int | None = None
    reason: str = ""


class Unplaced(Wire):
    """An issue that could not be turned into a change, and why."""

    issue: Issue
    why: Literal[
        "no_place", "not_there", "several_places", "overlap", "outside", "nothing_changes", "protected"
    ]


class IssuePatch(PatchJSON):
    """Patch of the issues of a text, and the issues that could not be placed."""

    unplaced: tuple[Unplaced, ...] = ()

    def plain(self) -> PatchJSON:
        """Return the patch alone."""
        return PatchJSON(new_text=self.new_text, change_map=self.change_map)


ReviewDecision = Literal["accept", "reject"]


class Irrevocable(Wire):
    """A command (or external tool call) that ran after a checkpoint and cannot be undone."""

    command: str
    exit_code: int | None = None
    """None for calls without exit code, and for commands whose end is unknown."""
    time: str


class Review(Wire):
    """The user's decision on changes of one file.

    `hunks` is their number, 0 if there are none to count. `checkpoint_id` holds the review state after it
    and the files before it. `lines` are those that a rejection removed (`+`) and restored (`-`).
    """

    type: ClassVar[str] = "review"
    decision: ReviewDecision
    path: str
    hunks: int
    checkpoint_id: str | None = None
    lines: str | None = None


class Restored(Wire):
    """Restoration of files to `checkpoint_id`; `redo` is the checkpoint taken before."""

    type: ClassVar[str] = "restored"
    checkpoint_id: str
    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...] = ()
    redo: str | None = None
