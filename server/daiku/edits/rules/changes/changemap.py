"""Change maps: the changes between two texts, in code points, editor ranges, or redacted text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from daiku.domain.work.patches import Change, ChangeOp, MergedPatch, PatchJSON, RangeEdit
from daiku.edits.rules.changes.diff import compute_line_ops, split_lines
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.positions import Encoding, find_line_starts, to_range


def apply_map(old: str, changes: Sequence[Change]) -> str | Refusal:
    """Return `old` with all `changes` applied, or a Refusal if they are not a change map of it."""
    parts: list[str] = []
    at = 0
    for number, change in enumerate(changes, 1):
        if problem := _describe_problem(old, change, at):
            return Refusal(f"Change {number} of {len(changes)}: {problem}.")
        parts += (old[at : change.start], change.text or "")
        at = change.end
    parts.append(old[at:])
    return "".join(parts)


def _describe_problem(old: str, change: Change, at: int) -> str:
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
    """Return the changes that lead from `old` to `new`, by line, trimmed to the parts that differ."""
    before, after = split_lines(old), split_lines(new)
    offsets = [0, *accumulate(len(line) for line in before)]
    changes: list[Change] = []
    for op, i, j, k, m in compute_line_ops(before, after):
        if op != "equal":
            changes.append(trim_change(offsets[i], "".join(before[i:j]), "".join(after[k:m])))
    return tuple(changes)


def trim_change(start: int, old: str, new: str) -> Change:
    """Return the change from `old` (at offset `start`) to `new`, limited to the part that differs."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[len(old) - tail - 1] == new[len(new) - tail - 1]:
        tail += 1
    return build_change(start + head, start + len(old) - tail, new[head : len(new) - tail])


def build_change(start: int, end: int, text: str) -> Change:
    """Return the change that replaces the text from `start` to `end` with `text`."""
    if start == end:
        return Change(op=ChangeOp.insert, start=start, end=end, text=text)
    if not text:
        return Change(op=ChangeOp.delete, start=start, end=end)
    return Change(op=ChangeOp.replace, start=start, end=end, text=text)


def patch_between(old: str, new: str) -> PatchJSON:
    """Return the patch from `old` to `new`."""
    return PatchJSON(new_text=new, change_map=change_map(old, new))


def patch_from(old: str, changes: Sequence[Change]) -> PatchJSON | Refusal:
    """Return the patch that `changes`, in any order, make of `old`."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    new = apply_map(old, ordered)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=tuple(ordered))


def overlap(one: Change, other: Change) -> bool:
    """Return True if two half-open ranges overlap.

    An insert overlaps a range that strictly contains it, and another insert at the same offset.
    """
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return one.start < other.end and other.start < one.end


def range_edits(old: str, changes: Sequence[Change], encoding: Encoding) -> tuple[RangeEdit, ...]:
    r"""Return the changes of `old` by line and character; `\r\n` is never split.

    Raises ValueError if they are no change map of `old`, or a text has half of a surrogate pair.
    """
    result = apply_map(old, changes)
    problem = result.text if isinstance(result, Refusal) else ""
    if problem:
        raise ValueError(problem)
    for text in (old, *(change.text or "" for change in changes)):
        _refuse_lone_surrogates(text)
    starts = find_line_starts(old)
    return tuple(
        RangeEdit(range=to_range(old, starts, start, end, encoding), new_text=text)
        for start, end, text in _widen_to_line_ends(old, changes)
    )


def _widen_to_line_ends(old: str, changes: Sequence[Change]) -> list[tuple[int, int, str]]:
    r"""Return ranges and texts, widened where one would split `\r\n`; adjacent ones are merged."""
    edits: list[tuple[int, int, str]] = []
    for change in changes:
        start, end, text = change.start, change.end, change.text or ""
        if _splits_crlf(old, start):
            if edits and edits[-1][1] > start - 1:  # the change before was widened over this line end
                first, last, before = edits.pop()
                start, text = first, before[: len(before) - (last - start)] + text
            else:
                start, text = start - 1, "\r" + text
        if _splits_crlf(old, end):
            end, text = end + 1, text + "\n"
        edits.append((start, end, text))
    return edits


def _splits_crlf(old: str, at: int) -> bool:
    return 0 < at < len(old) and old[at - 1] == "\r" and old[at] == "\n"


def _refuse_lone_surrogates(text: str) -> None:
    at = (
        next((n for n, sign in enumerate(text) if "\ud800" <= sign <= "\udfff"), None)
        if _is_unencodable(text)
        else None
    )
    if at is not None:
        raise ValueError(f"the text holds half of a surrogate pair at {at}")


def _is_unencodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


_HIDDEN = r"(-----BEGIN .*?-----END [^\n]*?-----|[^\n]*?|.*?)"
"""Pattern of the text that a redaction mark replaced. The alternative for a key block comes first because it
contains line breaks."""


class Hidden(NamedTuple):
    """A mark's half-open range in the redacted text, and the real text that it replaces."""

    start: int
    end: int
    real: str


def unredact(real: str, redacted: str, mark: str, changes: Sequence[Change]) -> tuple[Change, ...] | Refusal:
    """Convert `changes` of `redacted` to changes of `real`, which has a secret for each `mark`.

    A change must preserve the marks that it covers; otherwise a Refusal is returned.
    """
    if real == redacted:
        return tuple(changes)
    hidden = _find_hidden(real, redacted, mark)
    if hidden is None:
        return Refusal("The text holds secrets, and it cannot be told where.")
    converted: list[Change] = []
    for change in changes:
        text = _reveal(change, hidden, mark)
        if text is None:
            return Refusal("A change would take out or move a secret.")
        shift = sum(len(h.real) - (h.end - h.start) for h in hidden if h.end <= change.start)
        inside = sum(
            len(h.real) - (h.end - h.start)
            for h in hidden
            if change.start <= h.start and h.end <= change.end and change.start < change.end
        )
        converted.append(build_change(change.start + shift, change.end + shift + inside, text))
    return tuple(converted)


def moves_marks(redacted: str, mark: str, changes: Sequence[Change]) -> bool:
    """Return True if a change of `redacted` removes, cuts, or adds a mark."""
    places = [match.span() for match in re.finditer(re.escape(mark), redacted)]
    hidden = [Hidden(start, end, "") for start, end in places]
    return any(_reveal(change, hidden, mark) is None for change in changes)


def _reveal(change: Change, hidden: Sequence[Hidden], mark: str) -> str | None:
    """Return the change's text with its marks replaced; None if they are not those that it covers."""
    touched = [h for h in hidden if h.start < change.end and change.start < h.end]
    contained = all(change.start <= h.start and h.end <= change.end for h in touched)
    pieces = (change.text or "").split(mark)
    if not contained or len(pieces) - 1 != len(touched):
        return None
    return "".join(piece + (touched[n].real if n < len(touched) else "") for n, piece in enumerate(pieces))


def _find_hidden(real: str, redacted: str, mark: str) -> list[Hidden] | None:
    """Return the marks of `redacted` with their real text; None if the texts differ elsewhere."""
    before, after = split_lines(redacted), split_lines(real)
    starts = [0, *accumulate(map(len, before))]
    marks: list[Hidden] = []
    for op, i, j, k, m in compute_line_ops(before, after):
        if op == "equal":
            continue
        blocks = (
            zip(before[i:j], after[k:m], starts[i:j], strict=True)
            if j - i == m - k
            else iter([("".join(before[i:j]), "".join(after[k:m]), starts[i])])
        )
        for one, other, at in blocks:
            in_block = _find_in_block(one, other, at, mark)
            if in_block is None:
                return None
            marks += in_block
    return marks


def _find_in_block(redacted: str, real: str, at: int, mark: str) -> Iterator[Hidden] | None:
    pieces = redacted.split(mark)
    match = re.fullmatch(_HIDDEN.join(map(re.escape, pieces)), real, re.DOTALL)
    if match is None:
        return None
    starts = accumulate((len(piece) + len(mark) for piece in pieces[:-1]), initial=0)
    return (
        Hidden(at + start + len(piece), at + start + len(piece) + len(mark), secret)
        for start, piece, secret in zip(starts, pieces, match.groups(), strict=False)
    )


_GONE = "\0"
"""Placeholder for old text that a patch removed and that is therefore unknown."""


def merge_patches(draft: PatchJSON, style: PatchJSON) -> MergedPatch:
    """Merge two patches of one text. If they overlap, the draft wins and the style's change is in `dropped`.

    Raises ValueError if a change map does not lead to its text, or the two are patches of different texts.
    """
    before = reconstruct_old_text(draft, "draft")
    other = reconstruct_old_text(style, "style")
    if not _same_text(before, draft, other, style):
        raise ValueError("style is not a patch of the text that draft is a patch of")
    accepted: list[Change] = []
    dropped: list[Change] = []
    for change in style.change_map:
        clash = any(overlap(change, own) for own in draft.change_map)
        (dropped if clash else accepted).append(change)
    merged = patch_from(before, (*draft.change_map, *accepted))
    assert not isinstance(merged, Refusal), "changes that do not overlap are a change map"
    return MergedPatch(new_text=merged.new_text, change_map=merged.change_map, dropped=tuple(dropped))


def reconstruct_old_text(patch: PatchJSON, name: str) -> str:
    """Return the old text of `patch`, with a placeholder for each removed character.

    Raises ValueError with `name` if its change map does not lead to its text.
    """
    parts: list[str] = []
    last = new = 0
    for change in patch.change_map:
        gap = change.start - last
        parts += (patch.new_text[new : new + gap], _GONE * (change.end - change.start))
        last, new = change.end, new + gap + len(change.text or "")
    parts.append(patch.new_text[new:])
    old = "".join(parts)
    result = apply_map(old, patch.change_map)
    problem = result.text if isinstance(result, Refusal) else ""
    if problem:
        raise ValueError(f"{name}: {problem}")
    if result != patch.new_text:
        raise ValueError(f"{name}: its change_map does not lead to its new_text")
    return old


def _same_text(old: str, draft: PatchJSON, other: str, style: PatchJSON) -> bool:
    """Return True if the two texts agree wherever both are known."""
    if len(old) != len(other):
        return False
    at = 0
    for change in sorted((*draft.change_map, *style.change_map), key=lambda c: c.start):
        if old[at : change.start] != other[at : change.start] and at < change.start:
            return False
        at = max(at, change.end)
    return old[at:] == other[at:]


class Rebased(NamedTuple):
    """Changes of a drafted text, as changes of the text before it.

    `draft` has those inside the draft's own text, `style` those outside. `straddling` ones are in neither.
    """

    draft: PatchJSON
    style: PatchJSON
    straddling: tuple[Change, ...]


def rebase(old: str, draft: PatchJSON, changes: tuple[Change, ...]) -> Rebased:
    """Convert `changes` of `draft.new_text` to patches of `old`, of which `draft` is a patch."""
    places = tuple(_iter_places(draft))
    inside: dict[int, list[Change]] = {}
    style: list[Change] = []
    straddling: list[Change] = []
    for change in changes:
        index = next(
            (n for n, (_, a, b) in enumerate(places) if a < b and a <= change.start and change.end <= b), None
        )
        if index is not None:
            inside.setdefault(index, []).append(change)
        elif any(_touches(change, a, b) for _, a, b in places):
            straddling.append(change)
        else:
            shift = next((c.end - b for c, _, b in reversed(places) if b <= change.start), 0)
            style.append(change.model_copy(update={"start": change.start + shift, "end": change.end + shift}))
    own = [_amend(c, a, inside.get(n, [])) for n, (c, a, _) in enumerate(places)]
    one = patch_from(old, [c for c in own if c.start < c.end or c.text])
    other = patch_from(old, style)
    assert not isinstance(one, Refusal), "the draft's places are as they were"
    assert not isinstance(other, Refusal), "moved by what stands before them, changes keep their order"
    return Rebased(one, other, tuple(straddling))


def _iter_places(draft: PatchJSON) -> Iterator[tuple[Change, int, int]]:
    """Yield each change with the range of its text in the new text."""
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


def _amend(change: Change, start: int, inside: list[Change]) -> Change:
    """Return the draft's change with the changes `inside` its text applied. Its text is at `start`."""
    if not inside:
        return change
    moved = [c.model_copy(update={"start": c.start - start, "end": c.end - start}) for c in inside]
    text = patch_from(change.text or "", moved)
    return change if isinstance(text, Refusal) else build_change(change.start, change.end, text.new_text)
