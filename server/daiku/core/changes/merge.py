"""Two patches of one text made into one: where they overlap the first wins (R1.59, C1.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from daiku.core.changes.changemap import apply_map, change_of, overlap, patch_from
from daiku.core.matching.refusal import Refusal
from daiku.domain.work.patches import Change, MergedPatch, PatchJSON

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
    """Whether the two texts are one, wherever both are known."""
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
    """Whether a change reaches over a place of the draft: into its text, or across where it took some away."""
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
