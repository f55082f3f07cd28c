"""A document cut into parts that one reply can hold: at headings where it has some, else between paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from daiku.core.drafting.headings import front_matter_end, headings, lines_of
from daiku.domain.work.documents import Document

MOST = 12_000
"""Characters of a part: about what a model writes again whole without leaving things out."""


class Part(NamedTuple):
    """A stretch of a document (code points, half-open), and the heading that it begins with or stands below."""

    start: int
    end: int
    title: str = ""


def parts_of(document: Document) -> tuple[Part, ...]:
    """The parts of `document` in order, of at most `MOST` code points each; together they are all that may be
    changed. One part, which may be empty, where it fits. Front matter belongs to the first."""
    text = document.text
    first, last = document.selection or (0, len(text))
    heads = headings(text, document.form)

    def title(start: int, end: int) -> str:
        own = next((h.title for h in heads if start <= h.start < end), None)
        return own if own is not None else next((h.title for h in reversed(heads) if h.start < start), "")

    cuts = [*_cuts(document, first, last), last]
    return tuple(
        Part(a, b, title(a, b))
        for a, b in zip([first, *cuts], cuts, strict=False)
        if a < b or a == first == last
    )


def _cuts(document: Document, first: int, last: int) -> Iterator[int]:
    """Where parts end, but for the last one."""
    text, front = document.text, front_matter_end(document.text)
    sections = [h.start for h in headings(text, document.form) if max(first, front) < h.start < last]
    paragraphs = [at for at in _paragraphs(document) if first < at < last]
    at = first
    while last - at > MOST:
        limit = at + MOST
        cut = _best(sections, at, limit) or _best(paragraphs, at, limit) or _line(text, at, limit)
        yield cut
        at = cut


def _best(places: list[int], at: int, limit: int) -> int:
    """The last of `places` behind `at` that is not behind `limit`; 0 where there is none."""
    return max((place for place in places if at < place <= limit), default=0)


def _paragraphs(document: Document) -> Iterator[int]:
    """Where a paragraph begins that is no code."""
    blank = False
    for line in lines_of(document.text, document.form):
        if blank and not line.closed and line.text.strip():
            yield line.start
        blank = not line.closed and not line.text.strip()


def _line(text: str, at: int, limit: int) -> int:
    """The end of the last line before `limit`; of the last sentence or word where there is none; else `limit`."""
    for mark in ("\n", "。", ". ", " "):
        found = text.rfind(mark, at + 1, limit)
        if found > at:
            return found + len(mark)
    return limit - 1 if text[limit - 1] == "\r" else limit
