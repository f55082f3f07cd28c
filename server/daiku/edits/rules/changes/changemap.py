"""Change maps: what changed between two texts, in code points, editor ranges, or redacted text (R1.94-R1.96, C1.8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from daiku.domain.work.patches import Change, ChangeOp, MergedPatch, PatchJSON, RangeEdit
from daiku.edits.rules.changes.diff import line_ops, split_lines
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.positions import Encoding, line_starts, range_of


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
            found.append(trimmed(offsets[i], "".join(before[i:j]), "".join(after[k:m])))
    return tuple(found)


def trimmed(start: int, old: str, new: str) -> Change:
    """The change that makes `new` of `old`, which stands at `start`: only what differs."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[len(old) - tail - 1] == new[len(new) - tail - 1]:
        tail += 1
    return change_of(start + head, start + len(old) - tail, new[head : len(new) - tail])


def change_of(start: int, end: int, text: str) -> Change:
    """The change that puts `text` in the place of what stands from `start` to `end`."""
    if start == end:
        return Change(op=ChangeOp.insert, start=start, end=end, text=text)
    if not text:
        return Change(op=ChangeOp.delete, start=start, end=end)
    return Change(op=ChangeOp.replace, start=start, end=end, text=text)


def patch_between(old: str, new: str) -> PatchJSON:
    """`new` with the changes that lead to it from `old`."""
    return PatchJSON(new_text=new, change_map=change_map(old, new))


def patch_from(old: str, changes: Sequence[Change]) -> PatchJSON | Refusal:
    """The patch that `changes`, in any order, make of `old`."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    new = apply_map(old, ordered)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=tuple(ordered))


def overlap(one: Change, other: Change) -> bool:
    """Half-open ranges meet; an insert meets what it stands strictly inside of, and an insert at its own place."""
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return one.start < other.end and other.start < one.end


def range_edits(old: str, changes: Sequence[Change], encoding: Encoding) -> tuple[RangeEdit, ...]:
    """Return the changes of `old` by line and character; `\\r\\n` is never split.

    Raises ValueError: no change map of `old`, or a text holds half of a surrogate pair.
    """
    made = apply_map(old, changes)
    why = made.text if isinstance(made, Refusal) else ""
    if why:
        raise ValueError(why)
    for text in (old, *(change.text or "" for change in changes)):
        _refuse_lone_surrogates(text)
    starts = line_starts(old)
    return tuple(
        RangeEdit(range=range_of(old, starts, start, end, encoding), new_text=text)
        for start, end, text in _whole_line_ends(old, changes)
    )


def _whole_line_ends(old: str, changes: Sequence[Change]) -> list[tuple[int, int, str]]:
    """Places and texts, widened where one would begin or end between `\\r` and `\\n`; those that meet are one."""
    found: list[tuple[int, int, str]] = []
    for change in changes:
        start, end, text = change.start, change.end, change.text or ""
        if _splits(old, start):
            if found and found[-1][1] > start - 1:  # the change before was widened over this line end
                first, last, before = found.pop()
                start, text = first, before[: len(before) - (last - start)] + text
            else:
                start, text = start - 1, "\r" + text
        if _splits(old, end):
            end, text = end + 1, text + "\n"
        found.append((start, end, text))
    return found


def _splits(old: str, at: int) -> bool:
    return 0 < at < len(old) and old[at - 1] == "\r" and old[at] == "\n"


def _refuse_lone_surrogates(text: str) -> None:
    at = (
        next((n for n, sign in enumerate(text) if "\ud800" <= sign <= "\udfff"), None) if _odd(text) else None
    )
    if at is not None:
        raise ValueError(f"the text holds half of a surrogate pair at {at}")


def _odd(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


_HIDDEN = r"(-----BEGIN .*?-----END [^\n]*?-----|[^\n]*?|.*?)"
"""Pattern of the text that a redaction mark replaced. A block of a key goes first: its own line breaks are not those between two secrets."""


class Hidden(NamedTuple):
    """A mark in the shown text (half-open), and what stands for it in the real one."""

    start: int
    end: int
    real: str


def unredacted(real: str, shown: str, mark: str, changes: Sequence[Change]) -> tuple[Change, ...] | Refusal:
    """Return `changes` of `shown` as changes of `real`, which has secrets in the place of each `mark`.

    A change must keep the marks that it covers, else it is refused.
    """
    if real == shown:
        return tuple(changes)
    hidden = _hidden(real, shown, mark)
    if hidden is None:
        return Refusal("The text holds secrets, and it cannot be told where.")
    made: list[Change] = []
    for change in changes:
        text = _revealed(change, hidden, mark)
        if text is None:
            return Refusal("A change would take out or move a secret.")
        shift = sum(len(h.real) - (h.end - h.start) for h in hidden if h.end <= change.start)
        inside = sum(
            len(h.real) - (h.end - h.start)
            for h in hidden
            if change.start <= h.start and h.end <= change.end and change.start < change.end
        )
        made.append(change_of(change.start + shift, change.end + shift + inside, text))
    return tuple(made)


def moves_marks(shown: str, mark: str, changes: Sequence[Change]) -> bool:
    """Return True if a change of `shown` removes, cuts, or adds a mark."""
    places = [match.span() for match in re.finditer(re.escape(mark), shown)]
    hidden = [Hidden(start, end, "") for start, end in places]
    return any(_revealed(change, hidden, mark) is None for change in changes)


def _revealed(change: Change, hidden: Sequence[Hidden], mark: str) -> str | None:
    """The change's text with what its marks stand for; None where they are not those that it covers."""
    touched = [h for h in hidden if h.start < change.end and change.start < h.end]
    whole = all(change.start <= h.start and h.end <= change.end for h in touched)
    pieces = (change.text or "").split(mark)
    if not whole or len(pieces) - 1 != len(touched):
        return None
    return "".join(piece + (touched[n].real if n < len(touched) else "") for n, piece in enumerate(pieces))


def _hidden(real: str, shown: str, mark: str) -> list[Hidden] | None:
    """The marks of `shown` with what they stand for; None where the texts differ in more than that."""
    before, after = split_lines(shown), split_lines(real)
    starts = [0, *accumulate(map(len, before))]
    found: list[Hidden] = []
    for op, i, j, k, m in line_ops(before, after):
        if op == "equal":
            continue
        blocks = (
            zip(before[i:j], after[k:m], starts[i:j], strict=True)
            if j - i == m - k
            else iter([("".join(before[i:j]), "".join(after[k:m]), starts[i])])
        )
        for one, other, at in blocks:
            here = _in_block(one, other, at, mark)
            if here is None:
                return None
            found += here
    return found


def _in_block(shown: str, real: str, at: int, mark: str) -> Iterator[Hidden] | None:
    pieces = shown.split(mark)
    match = re.fullmatch(_HIDDEN.join(map(re.escape, pieces)), real, re.DOTALL)
    if match is None:
        return None
    starts = accumulate((len(piece) + len(mark) for piece in pieces[:-1]), initial=0)
    return (
        Hidden(at + start + len(piece), at + start + len(piece) + len(mark), secret)
        for start, piece, secret in zip(starts, pieces, match.groups(), strict=False)
    )


_GONE = "\0"
"""Stands for what is not known of an old text, because a patch took it away."""


def merge_patches(draft: PatchJSON, style: PatchJSON) -> MergedPatch:
    """Merge two patches of one text. Where they overlap, the draft wins and the style's change is in `dropped`.

    Raises ValueError: a change map does not lead to its text, or the two are not patches of one text.
    """
    before = known_text(draft, "draft")
    other = known_text(style, "style")
    if not _same_text(before, draft, other, style):
        raise ValueError("style is not a patch of the text that draft is a patch of")
    kept: list[Change] = []
    dropped: list[Change] = []
    for change in style.change_map:
        clash = any(overlap(change, mine) for mine in draft.change_map)
        (dropped if clash else kept).append(change)
    merged = patch_from(before, (*draft.change_map, *kept))
    assert not isinstance(merged, Refusal), "changes that do not overlap are a change map"
    return MergedPatch(new_text=merged.new_text, change_map=merged.change_map, dropped=tuple(dropped))


def known_text(patch: PatchJSON, name: str) -> str:
    """The old text of `patch` as far as the patch tells it: what it took away is filled with one sign.
    Raises ValueError, naming the patch: its change map does not lead to its text."""
    parts: list[str] = []
    last = new = 0
    for change in patch.change_map:
        gap = change.start - last
        parts += (patch.new_text[new : new + gap], _GONE * (change.end - change.start))
        last, new = change.end, new + gap + len(change.text or "")
    parts.append(patch.new_text[new:])
    old = "".join(parts)
    made = apply_map(old, patch.change_map)
    why = made.text if isinstance(made, Refusal) else ""
    if why:
        raise ValueError(f"{name}: {why}")
    if made != patch.new_text:
        raise ValueError(f"{name}: its change_map does not lead to its new_text")
    return old


def _same_text(old: str, draft: PatchJSON, other: str, style: PatchJSON) -> bool:
    """Return True if the two texts agree wherever both are known."""
    if len(old) != len(other):
        return False
    at = 0
    for change in sorted((*draft.change_map, *style.change_map), key=lambda each: each.start):
        if old[at : change.start] != other[at : change.start] and at < change.start:
            return False
        at = max(at, change.end)
    return old[at:] == other[at:]


class Rebased(NamedTuple):
    """Changes of a drafted text as changes of the text before it: `draft` with those in the draft's own words,
    `style` with those outside; `straddling` ones are in neither."""

    draft: PatchJSON
    style: PatchJSON
    straddling: tuple[Change, ...]


def rebase(old: str, draft: PatchJSON, changes: tuple[Change, ...]) -> Rebased:
    """`changes` of `draft.new_text` as patches of `old`, of which `draft` is a patch."""
    places = tuple(_places(draft))
    within: dict[int, list[Change]] = {}
    style: list[Change] = []
    straddling: list[Change] = []
    for change in changes:
        mine = next(
            (n for n, (_, a, b) in enumerate(places) if a < b and a <= change.start and change.end <= b), None
        )
        if mine is not None:
            within.setdefault(mine, []).append(change)
        elif any(_touches(change, a, b) for _, a, b in places):
            straddling.append(change)
        else:
            shift = next((c.end - b for c, _, b in reversed(places) if b <= change.start), 0)
            style.append(change.model_copy(update={"start": change.start + shift, "end": change.end + shift}))
    own = [_amended(c, a, within.get(n, [])) for n, (c, a, _) in enumerate(places)]
    one = patch_from(old, [c for c in own if c.start < c.end or c.text])
    other = patch_from(old, style)
    assert not isinstance(one, Refusal), "the draft's places are as they were"
    assert not isinstance(other, Refusal), "moved by what stands before them, changes keep their order"
    return Rebased(one, other, tuple(straddling))


def _places(draft: PatchJSON) -> Iterator[tuple[Change, int, int]]:
    """Each change, and where its text stands in the new text."""
    shift = 0
    for change in draft.change_map:
        start = change.start + shift
        end = start + len(change.text or "")
        yield change, start, end
        shift = end - change.end


def _touches(change: Change, start: int, end: int) -> bool:
    """Return True if a change overlaps a range of the draft, or spans the place of a deletion."""
    if start == end:
        return change.start < start < change.end
    return change.start < end and start < change.end


def _amended(change: Change, start: int, inside: list[Change]) -> Change:
    """The draft's change, whose text stands at `start`, with changes inside that text made."""
    if not inside:
        return change
    moved = [
        each.model_copy(update={"start": each.start - start, "end": each.end - start}) for each in inside
    ]
    text = patch_from(change.text or "", moved)
    return change if isinstance(text, Refusal) else change_of(change.start, change.end, text.new_text)
