"""Choice of hunks of an edit before it is made: numbering, and applying only the chosen ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalGiven
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.changes.diff import compute_line_ops, group_hunks, render_patch, split_lines
from daiku.edits.rules.matching.refusal import Refusal
from daiku.texts.text import NO_TEXT, Text, text

BY_HUNK = frozenset({"document/apply", "files/write", "files/edit", "files/patch"})
"""Tools whose edit can be applied in part."""


@dataclass(frozen=True, slots=True)
class ChosenHunks:
    """The hunks that the user chose of the edit in `preview`, and the user's feedback."""

    preview: str
    hunks: tuple[int, ...]
    feedback: str = ""


def get_chosen_hunks(
    request: ApprovalAsked | None, decisions: Mapping[str, ApprovalGiven]
) -> ChosenHunks | None:
    """Return the user's choice for an approval request; None for all of it."""
    decision = decisions.get(request.approval_id) if request is not None else None
    if request is None or decision is None or decision.hunks is None:
        return None
    return ChosenHunks(request.preview, decision.hunks, decision.feedback or "")


def explain_invalid_choice(request: ApprovalAsked, decision: ApprovalGiven) -> Text:
    """Return why the chosen hunks are no valid decision on the request; empty if they are."""
    if decision.hunks is None:
        return NO_TEXT
    if decision.decision not in ("allow_once", "allow_always"):
        return text("hunks.not_allowed")
    if not request.hunks:
        return text("hunks.whole")
    if not decision.hunks:
        return text("hunks.none")
    if any(not 0 <= hunk < request.hunks for hunk in decision.hunks):
        return text("hunks.there_are", last=request.hunks - 1)
    return NO_TEXT


class NumberedHunk(NamedTuple):
    """One numbered part of a diff: the lines that name its file, and its own lines."""

    head: str
    body: str


def parse_hunks(diff: str) -> tuple[NumberedHunk, ...]:
    """Return the numbered parts of a unified diff: every `@@` section, and every file without one."""
    hunks: list[NumberedHunk] = []
    head: list[str] = []
    body: list[str] = []
    is_bare = False  # the head has no hunk yet
    left_old = left_new = 0
    for line in [*split_lines(diff), ""]:
        if body and (left_old > 0 or left_new > 0 or line.startswith("\\")):
            body.append(line)
            left_old -= line.startswith(("-", " "))
            left_new -= line.startswith(("+", " "))
            continue
        if body:
            hunks.append(NumberedHunk("".join(head), "".join(body)))
            body, is_bare = [], False
        if line.startswith("@@ "):
            body = [line]
            left_old, left_new = _parse_lengths(line)
        elif (
            not line
            or line.startswith("diff --git ")
            or (line.startswith("--- ") and not _continues_rename(head, line))
        ):
            if is_bare:
                hunks.append(NumberedHunk("".join(head), ""))
            head, is_bare = [line], True
        else:
            head.append(line)
    return tuple(hunks)


def _continues_rename(head: Sequence[str], line: str) -> bool:
    """Return True if a `---` line belongs to the file that the head renames."""
    return len(head) == 3 and line == f"--- a/{head[1].removeprefix('rename from ')}"


def _parse_lengths(line: str) -> tuple[int, int]:
    old, new = line.split(" ")[1:3]
    return _parse_length(old), _parse_length(new)


def _parse_length(place: str) -> int:
    _, comma, length = place.partition(",")
    return int(length) if comma else 1


def count_choices(tool: str, preview: str) -> int:
    """Return the number of hunks of a call's preview to choose from; 0 if it is all or nothing."""
    if tool not in BY_HUNK:
        return 0
    parts = parse_hunks(preview)
    notebook = any(".ipynb" in part.head for part in parts)  # previewed as text, stored as JSON
    return 0 if notebook else len(parts)


class ChosenPart(NamedTuple):
    """The chosen part of a patch, and the rest."""

    patch: Patch
    left_out: Patch


def select_hunks(patch: Patch, choice: ChosenHunks) -> ChosenPart | Refusal:
    """Return only the chosen hunks of `patch`; a Refusal if it is no longer the edit in the preview."""
    places = [line for part in parse_hunks(render_patch(patch)) for line in _get_place(part)]
    if places != [line for part in parse_hunks(choice.preview) for line in _get_place(part)]:
        return Refusal(
            "Nothing was changed: the person chose parts of this edit, but the files changed since it was"
            " shown to them. Read them again, then edit."
        )
    chosen_changes: list[FileChange] = []
    left_out: list[FileChange] = []
    first = 0
    for change in patch.files:
        groups = _group_ops(change)
        count = max(1, len(groups))
        chosen = [i for i in range(count) if first + i in choice.hunks]
        first += count
        if len(chosen) == count:
            chosen_changes.append(change)
        elif not chosen:
            left_out.append(change)
        else:
            middle = _apply_groups(change, [groups[i] for i in chosen])
            chosen_changes.append(change.model_copy(update={"new": middle}))
            left_out.append(
                FileChange(path=change.to or change.path, kind="edit", old=middle, new=change.new)
            )
    return ChosenPart(Patch(files=tuple(chosen_changes)), Patch(files=tuple(left_out)))


def _get_place(part: NumberedHunk) -> list[str]:
    return [part.head, part.body.partition("\n")[0]]


def _group_ops(change: FileChange) -> list[list[tuple[str, int, int, int, int]]]:
    ops = compute_line_ops(split_lines(change.old or ""), split_lines(change.new or ""))
    return [list(group) for group in group_hunks(ops)]


def _apply_groups(change: FileChange, groups: Sequence[Sequence[tuple[str, int, int, int, int]]]) -> str:
    """Return the old text with only these groups applied."""
    old, new = split_lines(change.old or ""), split_lines(change.new or "")
    lines: list[str] = []
    at = 0
    for group in groups:
        for op, i, j, k, m in group:
            if op != "equal":
                lines += [*old[at:i], *new[k:m]]
                at = j
    return "".join([*lines, *old[at:]])


def render_left_out(part: ChosenPart, choice: ChosenHunks) -> str:
    """Return the message that tells the model which parts the user left out."""
    if not part.left_out.files:
        return ""
    feedback = f" They said: {choice.feedback}" if choice.feedback else ""
    return (
        f"The person allowed only a part of this edit.{feedback} These changes were left out and not made:\n"
        f"{render_patch(part.left_out)}".rstrip()
    )
