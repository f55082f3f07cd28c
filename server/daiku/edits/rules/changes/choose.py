"""Choosing hunks of an edit before it is made: what is numbered, what is left when some are not wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalGiven
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.changes.diff import hunk_groups, line_ops, patch_diff, split_lines
from daiku.edits.rules.matching.refusal import Refusal
from daiku.texts.text import NO_TEXT, Text, text

BY_HUNK = frozenset({"document/apply", "files/write", "files/edit", "files/patch"})
"""Tools whose edit can be carried out in part."""


@dataclass(frozen=True, slots=True)
class ChosenHunks:
    """What the person chose of the edit that they were shown (`preview`), and what they said to it."""

    preview: str
    hunks: tuple[int, ...]
    feedback: str = ""


def chosen_hunks_of(
    asked: ApprovalAsked | None, decisions: Mapping[str, ApprovalGiven]
) -> ChosenHunks | None:
    """What the person chose of a call that they were `asked` about; None for all of it."""
    given = decisions.get(asked.approval_id) if asked is not None else None
    if asked is None or given is None or given.hunks is None:
        return None
    return ChosenHunks(asked.preview, given.hunks, given.feedback or "")


def why_unfit(asked: ApprovalAsked, given: ApprovalGiven) -> Text:
    """Why the chosen hunks cannot be a decision on what was asked; empty where they can."""
    if given.hunks is None:
        return NO_TEXT
    if given.decision not in ("allow_once", "allow_always"):
        return text("hunks.not_allowed")
    if not asked.hunks:
        return text("hunks.whole")
    if not given.hunks:
        return text("hunks.none")
    if any(not 0 <= hunk < asked.hunks for hunk in given.hunks):
        return text("hunks.there_are", last=asked.hunks - 1)
    return NO_TEXT


class NumberedHunk(NamedTuple):
    """One numbered part of a diff: the lines that name its file, and its own."""

    head: str
    body: str


def shown_hunks(diff: str) -> tuple[NumberedHunk, ...]:
    """Return the numbered parts of a unified diff: every `@@` section, and every file without one."""
    found: list[NumberedHunk] = []
    head: list[str] = []
    body: list[str] = []
    alone = False  # the head has no part of its own yet
    left_old = left_new = 0
    for line in [*split_lines(diff), ""]:
        if body and (left_old > 0 or left_new > 0 or line.startswith("\\")):
            body.append(line)
            left_old -= line.startswith(("-", " "))
            left_new -= line.startswith(("+", " "))
            continue
        if body:
            found.append(NumberedHunk("".join(head), "".join(body)))
            body, alone = [], False
        if line.startswith("@@ "):
            body = [line]
            left_old, left_new = _lengths(line)
        elif not line or line.startswith("diff --git ") or (line.startswith("--- ") and not _of(head, line)):
            if alone:
                found.append(NumberedHunk("".join(head), ""))
            head, alone = [line], True
        else:
            head.append(line)
    return tuple(found)


def _of(head: Sequence[str], line: str) -> bool:
    """True where a `---` line belongs to the file whose renaming the head tells."""
    return len(head) == 3 and line == f"--- a/{head[1].removeprefix('rename from ')}"


def _lengths(line: str) -> tuple[int, int]:
    old, new = line.split(" ")[1:3]
    return _length(old), _length(new)


def _length(place: str) -> int:
    _, comma, length = place.partition(",")
    return int(length) if comma else 1


def choices(tool: str, preview: str) -> int:
    """How many hunks of a call's preview can be chosen from; 0 where it is all or nothing."""
    if tool not in BY_HUNK:
        return 0
    parts = shown_hunks(preview)
    notebook = any(".ipynb" in part.head for part in parts)  # shown as text, written as JSON
    return 0 if notebook else len(parts)


class ChosenPart(NamedTuple):
    """The wanted part of a patch, and what was left out as a diff."""

    patch: Patch
    left_out: Patch


def part_of(patch: Patch, wanted: ChosenHunks) -> ChosenPart | Refusal:
    """Only the wanted hunks of `patch`; refused where it is no longer the edit that was shown."""
    places = [line for part in shown_hunks(patch_diff(patch)) for line in _place(part)]
    if places != [line for part in shown_hunks(wanted.preview) for line in _place(part)]:
        return Refusal(
            "Nothing was changed: the person chose parts of this edit, but the files changed since it was"
            " shown to them. Read them again, then edit."
        )
    kept: list[FileChange] = []
    left: list[FileChange] = []
    first = 0
    for change in patch.files:
        groups = _groups(change)
        count = max(1, len(groups))
        chosen = [i for i in range(count) if first + i in wanted.hunks]
        first += count
        if len(chosen) == count:
            kept.append(change)
        elif not chosen:
            left.append(change)
        else:
            middle = _applied(change, [groups[i] for i in chosen])
            kept.append(change.model_copy(update={"new": middle}))
            left.append(FileChange(path=change.to or change.path, kind="edit", old=middle, new=change.new))
    return ChosenPart(Patch(files=tuple(kept)), Patch(files=tuple(left)))


def _place(part: NumberedHunk) -> list[str]:
    return [part.head, part.body.partition("\n")[0]]


def _groups(change: FileChange) -> list[list[tuple[str, int, int, int, int]]]:
    ops = line_ops(split_lines(change.old or ""), split_lines(change.new or ""))
    return [list(group) for group in hunk_groups(ops)]


def _applied(change: FileChange, groups: Sequence[Sequence[tuple[str, int, int, int, int]]]) -> str:
    """The old text with these groups alone."""
    old, new = split_lines(change.old or ""), split_lines(change.new or "")
    done: list[str] = []
    at = 0
    for group in groups:
        for op, i, j, k, m in group:
            if op != "equal":
                done += [*old[at:i], *new[k:m]]
                at = j
    return "".join([*done, *old[at:]])


def left_out_text(part: ChosenPart, wanted: ChosenHunks) -> str:
    """What the model is told of the parts that the person did not want."""
    if not part.left_out.files:
        return ""
    said = f" They said: {wanted.feedback}" if wanted.feedback else ""
    return (
        f"The person allowed only a part of this edit.{said} These changes were left out and not made:\n"
        f"{patch_diff(part.left_out)}".rstrip()
    )
