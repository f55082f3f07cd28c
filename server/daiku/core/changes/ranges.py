"""A change map as edits of an editor: lines and characters in UTF-8, UTF-16 or UTF-32 units (C1.8)."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.core.changes.changemap import apply_map
from daiku.core.matching.refusal import Refusal
from daiku.core.text.positions import Encoding, line_starts, range_of
from daiku.domain.work.patches import Change, RangeEdit


def range_edits(old: str, changes: Sequence[Change], encoding: Encoding) -> tuple[RangeEdit, ...]:
    """The changes of `old` by line and character. No place is within a line end: `\\r\\n` is changed whole.

    Raises ValueError: they are no change map of `old`, or a text holds half of a surrogate pair, which
    no encoding can carry.
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
