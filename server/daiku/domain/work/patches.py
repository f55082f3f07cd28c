"""Patches: one change of files as data; and decisions on changes, with what an undo cannot bring back."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from daiku.domain.base import Frozen, Wire


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
    insert = "insert"
    delete = "delete"
    replace = "replace"  # pyright: ignore[reportAssignmentType]  # the member is named by R1.94; it hides str.replace on purpose


class Change(Frozen):
    """One place of a change map: code points of the OLD text, half-open, sorted, no overlap (C1.8)."""

    op: ChangeOp
    start: int
    end: int
    text: str | None = None


class PatchJSON(Frozen):
    """A whole new text and the changes that lead to it (R1.96)."""

    new_text: str
    change_map: tuple[Change, ...] = ()


ReviewDecision = Literal["accept", "reject"]


class Irrevocable(Wire):
    """A command (or a call of another program's tool) that ran after a checkpoint: its effects stay."""

    command: str
    exit_code: int | None = None
    """None for calls that have none, and for commands whose end is not known."""
    time: str
