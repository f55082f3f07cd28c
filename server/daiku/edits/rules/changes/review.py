"""Review of changes: track which lines of a file come from Daiku while the file is edited further."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from daiku.dataclass import dataclass, replace
from daiku.edits.rules.changes.diff import line_ops, split_lines


class Blob(NamedTuple):
    """Content that is no text, by the name under which its bytes are kept."""

    name: str


Content = str | Blob | None
"""What a file holds; None where there is none."""


class ReviewSpan(NamedTuple):
    """Lines of the text before (`old`, half-open) that became lines of the text now (`new`).

    `birth`: the edit that made it. `touched`: the person changed lines of it since.
    """

    old: int
    old_end: int
    new: int
    new_end: int
    birth: str = ""
    touched: bool = False


@dataclass(frozen=True, slots=True)
class FileReview:
    """One file under review. `base` is the text without Daiku's open changes: the person's own typing
    elsewhere is in it as in `now`. `spans` lead from one to the other. `origin`: the name before."""

    base: Content
    now: Content
    spans: tuple[ReviewSpan, ...] = ()
    origin: str | None = None

    @property
    def open(self) -> bool:
        """True where there is something to decide on."""
        return bool(self.spans) or (self.base is None) != (self.now is None) or self.origin is not None

    @property
    def whole(self) -> bool:
        """True where it can only be decided on as a whole: made, deleted, or no text."""
        return not (isinstance(self.base, str) and isinstance(self.now, str))


class ReviewHunk(NamedTuple):
    """A span with its name and its lines, as it is shown."""

    id: str
    span: ReviewSpan
    old: tuple[str, ...]
    new: tuple[str, ...]


def lines_of(content: Content) -> list[str]:
    """The lines of a text; none where there is no text."""
    return split_lines(content) if isinstance(content, str) else []


def hunks_of(review: FileReview) -> tuple[ReviewHunk, ...]:
    """Return the undecided hunks of a file, from top to bottom."""
    base, now = lines_of(review.base), lines_of(review.now)
    found: list[ReviewHunk] = []
    seen: dict[str, int] = {}
    for span in review.spans:
        old, new = tuple(base[span.old : span.old_end]), tuple(now[span.new : span.new_end])
        text = "\0".join((span.birth, *old, "\1", *new))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        seen[digest] = number = seen.get(digest, -1) + 1
        found.append(ReviewHunk(f"{digest}-{number}" if number else digest, span, old, new))
    return tuple(found)


# ---- what happens to a file


def after_edit(review: FileReview, after: Content, birth: str) -> FileReview:
    """Return the review after Daiku changed the file to `after`."""
    if isinstance(after, Blob) or isinstance(review.base, Blob) or isinstance(review.now, Blob):
        return replace(review, now=after, spans=())
    changes = _changes(lines_of(review.now), lines_of(after))
    spans = _composed(review.spans, changes, lines_of(review.base), lines_of(after), birth)
    return replace(review, now=after, spans=spans)


def after_typing(review: FileReview, now: Content) -> FileReview:
    """Return the review after someone else changed the file to `now`. A change outside Daiku's hunks
    is not reviewed; one inside a hunk becomes part of it and marks it as touched."""
    if now == review.now:
        return review
    if not (isinstance(now, str) and isinstance(review.now, str)) or isinstance(review.base, Blob):
        return FileReview(now, now)  # they took it away, brought it back, or made something else of it
    changes = _changes(lines_of(review.now), lines_of(now))
    if review.base is None:  # all of a new file is Daiku's
        inside, beside = changes, []
    else:
        inside = [c for c in changes if any(_within(c, span) for span in review.spans)]
        beside = [c for c in changes if c not in inside]
    both = _beside(review, beside)
    if both is None:
        inside, beside, both = changes, [], review
    moved = [c._replace(start=c.start + d, end=c.end + d) for c in inside for d in [_grown_before(c, beside)]]
    spans = _composed(both.spans, moved, lines_of(both.base), lines_of(now), touched=True)
    return replace(both, now=now, spans=spans)


def after_decision(review: FileReview, accept: bool, ids: Collection[str] | None = None) -> FileReview:
    """Return the review after the hunks `ids` (None: all) were accepted or rejected; if rejected, `now` is
    the text that the file must get. Unknown ids are ignored."""
    chosen = {hunk.span for hunk in hunks_of(review) if ids is None or hunk.id in ids}
    if ids is None or (review.whole and chosen):
        content = review.now if accept else review.base
        return FileReview(content, content)
    base, now = lines_of(review.base), lines_of(review.now)
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
        return replace(review, base="".join(_spliced(base, texts)), spans=tuple(spans))
    return replace(review, now="".join(_spliced(now, texts)), spans=tuple(spans))


# ---- lines


class _Change(NamedTuple):
    """Lines `start` to `end` (half-open) are replaced by `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def grown(self) -> int:
        return len(self.lines) - (self.end - self.start)


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    return [_Change(i, j, tuple(new[k:m])) for op, i, j, k, m in line_ops(old, new) if op != "equal"]


def _spliced(lines: Sequence[str], changes: Sequence[_Change]) -> list[str]:
    """`lines` with the changes (sorted, apart) carried out."""
    done: list[str] = []
    at = 0
    for change in changes:
        done += lines[at : change.start]
        done += change.lines
        at = change.end
    return [*done, *lines[at:]]


def _within(change: _Change, span: ReviewSpan) -> bool:
    """True where the change is of the span's own lines, or takes in the place where lines went away."""
    if span.new == span.new_end:
        return change.start < span.new < change.end
    if change.start == change.end:
        return span.new < change.start < span.new_end
    return change.start < span.new_end and span.new < change.end


def _precedes(change: _Change, span: ReviewSpan) -> bool:
    """Of two that are apart: the change comes first. At the place of lines that went away it comes after."""
    return change.end <= span.new and not change.start == span.new == span.new_end


def _grown_before(change: _Change, others: Sequence[_Change]) -> int:
    return sum(other.grown for other in others if other.end <= change.start)


def _ended(lines: Sequence[str]) -> bool:
    """True where only the last line may be without an end."""
    return all(line.endswith("\n") for line in lines[:-1])


def _beside(review: FileReview, changes: Sequence[_Change]) -> FileReview | None:
    """Apply changes apart from every span to both sides; None if that would join two lines."""
    if not changes:
        return review
    in_base: list[_Change] = []
    for c in changes:
        d = sum((s.old_end - s.old) - (s.new_end - s.new) for s in review.spans if not _precedes(c, s))
        in_base.append(c._replace(start=c.start + d, end=c.end + d))
    base, now = _spliced(lines_of(review.base), in_base), _spliced(lines_of(review.now), changes)
    if not (_ended(base) and _ended(now)):
        return None
    spans: list[ReviewSpan] = []
    for s in review.spans:
        d = sum(c.grown for c in changes if _precedes(c, s))
        spans.append(s._replace(old=s.old + d, old_end=s.old_end + d, new=s.new + d, new_end=s.new_end + d))
    return replace(review, base="".join(base), now="".join(now), spans=tuple(spans))


class _Group(NamedTuple):
    """Spans and changes that meet, from `start` to `end` of the text between them."""

    start: int
    end: int
    spans: tuple[ReviewSpan, ...]
    changes: tuple[_Change, ...]


def _groups(spans: Sequence[ReviewSpan], changes: Sequence[_Change]) -> list[_Group]:
    parts = [_Group(s.new, s.new_end, (s,), ()) for s in spans]
    parts += [_Group(c.start, c.end, (), (c,)) for c in changes]
    groups: list[_Group] = []
    for part in sorted(parts, key=lambda g: (g.start, g.end)):
        last = groups[-1] if groups else None
        # Spans that only touch one another stay apart: a change is what joins.
        if last is not None and (part.start < last.end or (part.start == last.end and _joins(last, part))):
            groups[-1] = _Group(
                last.start, max(last.end, part.end), last.spans + part.spans, last.changes + part.changes
            )
        else:
            groups.append(part)
    return groups


def _joins(last: _Group, part: _Group) -> bool:
    return bool(last.changes or part.changes)


def _composed(
    spans: Sequence[ReviewSpan],
    changes: Sequence[_Change],
    base: Sequence[str],
    after: Sequence[str],
    birth: str = "",
    *,
    touched: bool = False,
) -> tuple[ReviewSpan, ...]:
    """From `base` to `after`, where `spans` lead from `base` to the text that `changes` changed."""
    found: list[ReviewSpan] = []
    to_base = to_after = number = 0
    for group in _groups(spans, changes):
        in_spans = sum((s.old_end - s.old) - (s.new_end - s.new) for s in group.spans)
        in_changes = sum(c.grown for c in group.changes)
        a, b = group.start + to_base, group.end + to_base + in_spans
        c, d = group.start + to_after, group.end + to_after + in_changes
        to_base, to_after = to_base + in_spans, to_after + in_changes
        if not group.changes:
            found += (s._replace(new=s.new + to_after, new_end=s.new_end + to_after) for s in group.spans)
            continue
        name = group.spans[0].birth if group.spans else f"{birth}.{number}"
        number += 1
        mark = touched or any(s.touched for s in group.spans)
        found += (
            ReviewSpan(a + i, a + j, c + k, c + m, name, mark)
            for op, i, j, k, m in line_ops(base[a:b], after[c:d])
            if op != "equal"
        )
    return tuple(found)
