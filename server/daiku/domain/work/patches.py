"""Patches: one change of files as data; and decisions on changes, with what an undo cannot bring back."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from daiku.domain.base import Frozen, Wire
from daiku.domain.runs import Range


class SearchReplace(Frozen):
    """Replace the one place where `search` stands by `replace`; every place with `replace_all`."""

    search: str = Field(description="as it stands there, once")
    replace: str = Field(description="text in its place")
    replace_all: bool = Field(default=False, description="every place, not just one")


FileKind = Literal["create", "edit", "delete", "rename"]


class FileChange(Frozen):
    """What happens to one file. `old` is the text that the change was made against (None: there was
    none), `new` the text after it (None: deleted). A rename has `to`. Paths are relative, with `/`."""

    path: str
    kind: FileKind
    old: str | None = None
    new: str | None = None
    to: str | None = None


class Patch(Frozen):
    """All changes of one tool call: applied whole or not at all."""

    files: tuple[FileChange, ...]


class FileStat(Wire):
    """What a person sees of one changed file: lines added and removed."""

    path: str
    kind: FileKind
    added: int = 0
    removed: int = 0


class ChangeOp(StrEnum):
    """What a change does with its place of the old text (R1.94)."""

    insert = "insert"
    delete = "delete"
    replace = "replace"  # pyright: ignore[reportAssignmentType]  # the member is named by R1.94; it hides str.replace on purpose


class Change(Wire):
    """One place of a change map (R1.95): code points of the OLD text, half-open, sorted, no overlap (C1.8).
    An insert has `end == start` and a `text`, a delete no text, a replace both."""

    op: ChangeOp
    start: int
    end: int
    text: str | None = None


class PatchJSON(Wire):
    """A whole new text and the changes that lead to it from the old one (R1.96): applying `change_map` to the
    old text gives `new_text`."""

    new_text: str
    change_map: tuple[Change, ...] = ()


class MergedPatch(PatchJSON):
    """Two patches of one text as one, and the changes of the second that gave way to the first (C1.9)."""

    dropped: tuple[Change, ...] = ()


class RangeEdit(Wire):
    """A change by line and character of the old text, in the units that editor and server agreed on."""

    range: Range
    new_text: str


class Issue(Wire):
    """Something to be put right in a text, and what is to stand there instead. Its place is `start` and `end`
    (code points, half-open), or the one place where `quote` stands; with both, the quote has to stand there."""

    replacement: str
    quote: str = ""
    start: int | None = None
    end: int | None = None
    reason: str = ""


class Unplaced(Wire):
    """An issue that was not turned into a change, and why."""

    issue: Issue
    why: Literal[
        "no_place", "not_there", "several_places", "overlap", "outside", "nothing_changes", "protected"
    ]


class IssuePatch(PatchJSON):
    """The patch that issues make of a text, and those of them that could not be placed."""

    unplaced: tuple[Unplaced, ...] = ()

    def plain(self) -> PatchJSON:
        """Return the patch alone."""
        return PatchJSON(new_text=self.new_text, change_map=self.change_map)


ReviewDecision = Literal["accept", "reject"]


class Irrevocable(Wire):
    """A command (or a call of another program's tool) that ran after a checkpoint: its effects stay."""

    command: str
    exit_code: int | None = None
    """None for calls that have none, and for commands whose end is not known."""
    time: str


class Review(Wire):
    """The person accepted or rejected changes of one file: `hunks` of them, 0 where there are none to
    count. `checkpoint_id` holds how the review stood after it, and the files as they were before. `lines` are those that
    a rejection took away (`+`) and brought back (`-`)."""

    type: ClassVar[str] = "review"
    decision: ReviewDecision
    path: str
    hunks: int
    checkpoint_id: str | None = None
    lines: str | None = None


class Restored(Wire):
    """Files were brought back to `checkpoint_id`; `redo` is the checkpoint that was taken before it."""

    type: ClassVar[str] = "restored"
    checkpoint_id: str
    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...] = ()
    redo: str | None = None
