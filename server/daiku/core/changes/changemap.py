"""Change maps: what changed between two texts, in code points of the old one (R1.94-R1.96, C1.8, C1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from daiku.core.changes.align import line_ops
from daiku.core.changes.diff import split_lines
from daiku.core.matching.refusal import Refusal
from daiku.domain.work.patches import Change, ChangeOp, PatchJSON


@dataclass(frozen=True, slots=True)
class Merged:
    """Two patches as one, and the changes of the second that gave way."""

    patch: PatchJSON
    dropped: tuple[Change, ...]


def apply_map(old: str, changes: Sequence[Change]) -> str | Refusal:
    """`old` after all `changes`, or why they are not a change map of it."""
    parts: list[str] = []
    at = 0
    for number, change in enumerate(changes, 1):
        if wrong := _wrong(old, change, at):
            return Refusal(f"Change {number} of {len(changes)}: {wrong}.")
        parts += (old[at : change.start], change.text or "")
        at = change.end
    parts.append(old[at:])
    return "".join(parts)


def _wrong(old: str, change: Change, at: int) -> str:
    if not 0 <= change.start <= change.end <= len(old):
        return f"{change.start} to {change.end} is not within the {len(old)} code points of the old text"
    if change.start < at:
        return f"it begins at {change.start}, before the change above it ends at {at}"
    match change.op:
        case ChangeOp.insert:
            if change.start != change.end or change.text is None:
                return "an insert has a text, and an end that is its start"
        case ChangeOp.delete:
            if change.start == change.end or change.text:
                return "a delete has a length and no text"
        case ChangeOp.replace:
            if change.start == change.end or change.text is None:
                return "a replace has a length and a text"
    return ""


def change_map(old: str, new: str) -> tuple[Change, ...]:
    """The changes that lead from `old` to `new`, line by line, trimmed to what differs in them."""
    before, after = split_lines(old), split_lines(new)
    offsets = [0, *accumulate(len(line) for line in before)]
    found: list[Change] = []
    for op, i, j, k, m in line_ops(before, after):
        if op != "equal":
            found.append(_trimmed(offsets[i], "".join(before[i:j]), "".join(after[k:m])))
    return tuple(found)


def _trimmed(start: int, old: str, new: str) -> Change:
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[len(old) - tail - 1] == new[len(new) - tail - 1]:
        tail += 1
    first, last, text = start + head, start + len(old) - tail, new[head : len(new) - tail]
    if first == last:
        return Change(op=ChangeOp.insert, start=first, end=last, text=text)
    if not text:
        return Change(op=ChangeOp.delete, start=first, end=last)
    return Change(op=ChangeOp.replace, start=first, end=last, text=text)


def patch_between(old: str, new: str) -> PatchJSON:
    """`new` with the changes that lead to it from `old`; for the public API (issue 10)."""
    return PatchJSON(new_text=new, change_map=change_map(old, new))


def patch_from(old: str, changes: Sequence[Change]) -> PatchJSON | Refusal:
    """The patch that `changes`, in any order, make of `old`."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    new = apply_map(old, ordered)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=tuple(ordered))


def merge_patches(old: str, draft: PatchJSON, style: PatchJSON) -> Merged | Refusal:
    """Both patches of `old` as one: where they overlap the draft's change stays, the style's is
    dropped. For the public API (issue 10)."""
    for change in (apply_map(old, draft.change_map), apply_map(old, style.change_map)):
        if isinstance(change, Refusal):
            return change
    kept: list[Change] = []
    dropped: list[Change] = []
    for change in style.change_map:
        clash = any(_overlap(change, other) for other in draft.change_map)
        (dropped if clash else kept).append(change)
    merged = patch_from(old, (*draft.change_map, *kept))
    return merged if isinstance(merged, Refusal) else Merged(merged, tuple(dropped))


def _overlap(one: Change, other: Change) -> bool:
    """Half-open ranges meet; an insert meets what it stands strictly inside of, and an insert at its own place."""
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return one.start < other.end and other.start < one.end
