"""Review of changes: tracks which lines of a file come from Daiku while the file is edited further."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from daiku.dataclass import dataclass, replace
from daiku.edits.rules.changes.diff import compute_line_ops, split_lines


class Blob(NamedTuple):
    """Binary content, by the name under which its bytes are stored."""

    name: str


Content = str | Blob | None
"""The content of a file; None if there is no file."""


class ReviewSpan(NamedTuple):
    """A half-open range of old lines (`old`) that became a range of current lines (`new`).

    `birth`: the edit that made it. `touched`: the user changed lines in it since.
    """

    old: int
    old_end: int
    new: int
    new_end: int
    birth: str = ""
    touched: bool = False


@dataclass(frozen=True, slots=True)
class FileReview:
    """One file under review.

    `base` is the text without Daiku's open changes; the user's own changes elsewhere are in both `base` and
    `now`. `spans` lead from `base` to `now`. `origin` is the name before a rename.
    """

    base: Content
    now: Content
    spans: tuple[ReviewSpan, ...] = ()
    origin: str | None = None

    @property
    def open(self) -> bool:
        """Whether there is something to decide on."""
        return bool(self.spans) or (self.base is None) != (self.now is None) or self.origin is not None

    @property
    def is_all_or_nothing(self) -> bool:
        """Whether it can only be decided on completely: created, deleted, or binary."""
        return not (isinstance(self.base, str) and isinstance(self.now, str))


class ReviewHunk(NamedTuple):
    """A span with its id and its lines, for display."""

    id: str
    span: ReviewSpan
    old: tuple[str, ...]
    new: tuple[str, ...]


def get_lines(content: Content) -> list[str]:
    """Return the lines of a text; none if the content is not text."""
    return split_lines(content) if isinstance(content, str) else []


def list_hunks(review: FileReview) -> tuple[ReviewHunk, ...]:
    """Return the undecided hunks of a file, from top to bottom."""
    base, now = get_lines(review.base), get_lines(review.now)
    hunks: list[ReviewHunk] = []
    counts: dict[str, int] = {}
    for span in review.spans:
        old, new = tuple(base[span.old : span.old_end]), tuple(now[span.new : span.new_end])
        text = "\0".join((span.birth, *old, "\1", *new))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        counts[digest] = number = counts.get(digest, -1) + 1
        hunks.append(ReviewHunk(f"{digest}-{number}" if number else digest, span, old, new))
    return tuple(hunks)


# ---- operations on a file


def after_edit(review: FileReview, after: Content, birth: str) -> FileReview:
    """Return the review after Daiku changed the file to `after`."""
    if isinstance(after, Blob) or isinstance(review.base, Blob) or isinstance(review.now, Blob):
        return replace(review, now=after, spans=())
    changes = _compute_changes(get_lines(review.now), get_lines(after))
    spans = _compose(review.spans, changes, get_lines(review.base), get_lines(after), birth)
    return replace(review, now=after, spans=spans)


def after_typing(review: FileReview, now: Content) -> FileReview:
    """Return the review after the user or another program changed the file to `now`.

    A change outside Daiku's hunks is not reviewed. One inside a hunk becomes part of it and marks it as
    touched.
    """
    if now == review.now:
        return review
    if not (isinstance(now, str) and isinstance(review.now, str)) or isinstance(review.base, Blob):
        return FileReview(now, now)  # deleted, created, or replaced by binary content
    changes = _compute_changes(get_lines(review.now), get_lines(now))
    if review.base is None:  # all of a new file is Daiku's
        inside, outside = changes, []
    else:
        inside = [c for c in changes if any(_is_within(c, span) for span in review.spans)]
        outside = [c for c in changes if c not in inside]
    rebased = _apply_outside(review, outside)
    if rebased is None:
        inside, outside, rebased = changes, [], review
    moved = [
        c._replace(start=c.start + d, end=c.end + d)
        for c in inside
        for d in [_count_growth_before(c, outside)]
    ]
    spans = _compose(rebased.spans, moved, get_lines(rebased.base), get_lines(now), touched=True)
    return replace(rebased, now=now, spans=spans)


def after_decision(review: FileReview, accept: bool, ids: Collection[str] | None = None) -> FileReview:
    """Return the review after the hunks `ids` (None: all) were accepted or rejected.

    If rejected, `now` is the text that the file must get. Unknown ids are ignored.
    """
    chosen = {hunk.span for hunk in list_hunks(review) if ids is None or hunk.id in ids}
    if ids is None or (review.is_all_or_nothing and chosen):
        content = review.now if accept else review.base
        return FileReview(content, content)
    base, now = get_lines(review.base), get_lines(review.now)
    texts = [
        _Change(s.old, s.old_end, tuple(now[s.new : s.new_end]))
        if accept
        else _Change(s.new, s.new_end, tuple(base[s.old : s.old_end]))
        for s in review.spans
        if s in chosen
    ]
    spans: list[ReviewSpan] = []
    shift = 0
    for span in review.spans:
        grown = (span.new_end - span.new) - (span.old_end - span.old)
        if span in chosen:
            shift += grown if accept else -grown
        elif accept:
            spans.append(span._replace(old=span.old + shift, old_end=span.old_end + shift))
        else:
            spans.append(span._replace(new=span.new + shift, new_end=span.new_end + shift))
    if accept:
        return replace(review, base="".join(_splice(base, texts)), spans=tuple(spans))
    return replace(review, now="".join(_splice(now, texts)), spans=tuple(spans))


# ---- lines


class _Change(NamedTuple):
    """A replacement of the lines `start` to `end` (half-open) by `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def grown(self) -> int:
        return len(self.lines) - (self.end - self.start)


def _compute_changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    return [_Change(i, j, tuple(new[k:m])) for op, i, j, k, m in compute_line_ops(old, new) if op != "equal"]


def _splice(lines: Sequence[str], changes: Sequence[_Change]) -> list[str]:
    """Return `lines` with the changes (sorted, not overlapping) applied."""
    result: list[str] = []
    at = 0
    for change in changes:
        result += lines[at : change.start]
        result += change.lines
        at = change.end
    return [*result, *lines[at:]]


def _is_within(change: _Change, span: ReviewSpan) -> bool:
    """Return True if the change affects the span's lines, or includes the place of a deletion."""
    if span.new == span.new_end:
        return change.start < span.new < change.end
    if change.start == change.end:
        return span.new < change.start < span.new_end
    return change.start < span.new_end and span.new < change.end


def _precedes(change: _Change, span: ReviewSpan) -> bool:
    """Return True if a change apart from the span comes before it. At the place of a deletion it comes after."""
    return change.end <= span.new and not change.start == span.new == span.new_end


def _count_growth_before(change: _Change, others: Sequence[_Change]) -> int:
    return sum(other.grown for other in others if other.end <= change.start)


def _has_line_ends(lines: Sequence[str]) -> bool:
    """Return True if all lines but the last have a line end."""
    return all(line.endswith("\n") for line in lines[:-1])


def _apply_outside(review: FileReview, changes: Sequence[_Change]) -> FileReview | None:
    """Apply changes outside all spans to both texts; None if that would join two lines."""
    if not changes:
        return review
    in_base: list[_Change] = []
    for c in changes:
        d = sum((s.old_end - s.old) - (s.new_end - s.new) for s in review.spans if not _precedes(c, s))
        in_base.append(c._replace(start=c.start + d, end=c.end + d))
    base, now = _splice(get_lines(review.base), in_base), _splice(get_lines(review.now), changes)
    if not (_has_line_ends(base) and _has_line_ends(now)):
        return None
    spans: list[ReviewSpan] = []
    for s in review.spans:
        d = sum(c.grown for c in changes if _precedes(c, s))
        spans.append(s._replace(old=s.old + d, old_end=s.old_end + d, new=s.new + d, new_end=s.new_end + d))
    return replace(review, base="".join(base), now="".join(now), spans=tuple(spans))


class _Group(NamedTuple):
    """Spans and changes that overlap, from `start` to `end` of the current text."""

    start: int
    end: int
    spans: tuple[ReviewSpan, ...]
    changes: tuple[_Change, ...]


def _group_overlapping(spans: Sequence[ReviewSpan], changes: Sequence[_Change]) -> list[_Group]:
    parts = [_Group(s.new, s.new_end, (s,), ()) for s in spans]
    parts += [_Group(c.start, c.end, (), (c,)) for c in changes]
    groups: list[_Group] = []
    for part in sorted(parts, key=lambda g: (g.start, g.end)):
        last = groups[-1] if groups else None
        # Adjacent spans stay separate unless a change joins them.
        if last is not None and (part.start < last.end or (part.start == last.end and _joins(last, part))):
            groups[-1] = _Group(
                last.start, max(last.end, part.end), last.spans + part.spans, last.changes + part.changes
            )
        else:
            groups.append(part)
    return groups


def _joins(last: _Group, part: _Group) -> bool:
    return bool(last.changes or part.changes)


def _compose(
    spans: Sequence[ReviewSpan],
    changes: Sequence[_Change],
    base: Sequence[str],
    after: Sequence[str],
    birth: str = "",
    *,
    touched: bool = False,
) -> tuple[ReviewSpan, ...]:
    """Combine `spans` with `changes` of the current text; return spans from `base` to `after`."""
    composed: list[ReviewSpan] = []
    to_base = to_after = number = 0
    for group in _group_overlapping(spans, changes):
        in_spans = sum((s.old_end - s.old) - (s.new_end - s.new) for s in group.spans)
        in_changes = sum(c.grown for c in group.changes)
        a, b = group.start + to_base, group.end + to_base + in_spans
        c, d = group.start + to_after, group.end + to_after + in_changes
        to_base, to_after = to_base + in_spans, to_after + in_changes
        if not group.changes:
            composed += (s._replace(new=s.new + to_after, new_end=s.new_end + to_after) for s in group.spans)
            continue
        name = group.spans[0].birth if group.spans else f"{birth}.{number}"
        number += 1
        mark = touched or any(s.touched for s in group.spans)
        composed += (
            ReviewSpan(a + i, a + j, c + k, c + m, name, mark)
            for op, i, j, k, m in compute_line_ops(base[a:b], after[c:d])
            if op != "equal"
        )
    return tuple(composed)
