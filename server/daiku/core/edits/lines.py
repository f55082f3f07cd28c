"""Replace whole lines by search: tolerant matching, unchanged lines kept, ambiguous matches refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.core.edits.elisions import elided_hunk, fill_elisions
from daiku.core.edits.hunks import apply_hunks
from daiku.core.matching.hunk import Replacement, hunk_of
from daiku.core.matching.indents import indent_of, learn_indents, reindent
from daiku.core.matching.insert import line_end_at, replacement_for, splice
from daiku.core.matching.match import (
    BlockMatch,
    Level,
    find_ignoring_blank_lines,
    find_lines,
    find_tokens,
    find_windows,
    is_evenly_indented,
    line_start,
)
from daiku.core.matching.preserve import merge_blanks
from daiku.core.matching.refusal import Refusal, ambiguous, not_found

_NUMBERED = re.compile(r"\s*(\d+) ?[|│→\t] ?(.*)", re.DOTALL)


def edit_lines(
    text: str,
    search: str,
    replace: str,
    *,
    within_lines: bool = False,
    path: str = "",
    insisted: bool = False,
) -> str | Refusal:
    """`text` with `replace` for the one place whose whole lines are those of `search`.

    They may differ in blanks at line ends, indentation (the same in all lines),
    look-alike punctuation, blanks between words, blank lines at the edges, and line numbers copied from a
    listing. The same words in another layout count too; with `within_lines` also in a part of a line, to whose end they
    go where the search has a line end. What is left out of them (`// ...`) is filled in, or it is refused.
    """
    old, new = bare_lines(search), bare_lines(replace)
    if not search.endswith("\n") and not replace:
        new = [""]  # the line is emptied, not taken out: its line end was not part of the search
    elided = elided_hunk(old, new)
    if elided is not None and not find_lines(text, old):
        return elided if isinstance(elided, Refusal) else apply_hunks(text, [elided])
    filled = fill_elisions(new, old, path=path, insisted=insisted)
    if isinstance(filled, Refusal):
        return filled
    new = filled
    if _grows_beside_blanks(old, new) and not find_lines(text, old):
        return not_found(text, old)
    for old_lines, lines in _readings(old, new):
        spans = find_lines(text, old_lines)
        if len(spans) == 1 and spans[0].level <= Level.trailing:
            spans += _indented_matches(text, old_lines)
        if spans and spans[0].level >= Level.indent:  # the same lines, but for blank ones, may be meant
            spans = [*spans, *_unblanked_matches(text, old_lines, spans)]
        if len(spans) > 1:
            return ambiguous(text, [span.start for span in spans])
        if spans:
            return _replace_span(text, old_lines, lines, spans[0])
    tokens = find_tokens(text, search)
    if not within_lines:
        tokens = [place for place in tokens if _begins_line(text, place[0])]
    if not within_lines or search.endswith("\n"):
        tokens = [place for place in tokens if _ends_line(text, place[1])]
    if len(tokens) > 1:
        return ambiguous(text, [start for start, _ in tokens])
    if tokens and (laid_out := _other_layout(text, search, "\n".join(new), *tokens[0])) is not None:
        return laid_out
    return not_found(text, old)


def _indented_matches(text: str, old: Sequence[str]) -> list[BlockMatch]:
    """Return the indented places of unindented lines: the search may have lost its indentation."""
    if all(line != line.lstrip() for line in old if line.strip()):
        return []
    return [s for s in find_windows(text, old) if s.level >= Level.indent and is_evenly_indented(old, s)]


def _unblanked_matches(text: str, old: Sequence[str], spans: Sequence[BlockMatch]) -> list[BlockMatch]:
    """Return the places of `old` that differ in blank lines only, besides those already found."""
    known = {span.start for span in spans}
    starts = [start for start in find_ignoring_blank_lines(text, old) if start not in known]
    return [BlockMatch(start, start, (), ()) for start in starts]


def bare_lines(text: str) -> list[str]:
    """The lines without line ends; a final newline begins no further line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _replace_span(
    text: str, search: Sequence[str], replace: Sequence[str], span: BlockMatch
) -> str | Refusal:
    place = replacement_for(text, hunk_of(search, replace, span.levels), span)
    return place if isinstance(place, Refusal) else _splice_replacement(text, place)


def _splice_replacement(text: str, place: Replacement) -> str:
    return splice(text, place.start, place.end, place.new)


def _readings(old: list[str], new: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return search and replacement unchanged, without copied line numbers, and without blank lines at the edges."""
    found = [(old, new)]
    if (plain := _without_numbers(old)) is not None:
        unnumbered = _without_numbers(new)
        found.append((plain, unnumbered if unnumbered is not None else new))
    first = next((n for n, line in enumerate(old) if line.strip()), 0)
    last = next((n for n, line in enumerate(reversed(old)) if line.strip()), 0)
    if first or last:
        blank_above = next((n for n, line in enumerate(new) if line.strip()), len(new))
        kept = new[min(first, blank_above) :]
        blank_below = next((n for n, line in enumerate(reversed(kept)) if line.strip()), len(kept))
        found.append((old[first : len(old) - last], kept[: len(kept) - min(last, blank_below)]))
    return found


def _grows_beside_blanks(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return True if lines are added beside a blank line at an edge of the search.

    Where the file lacks that blank line, a line that the search left out may stand, and the place is in doubt.
    """
    edges = [(old, new), (old[::-1], new[::-1])]
    return any(rows and not rows[0].strip() and _grows_at(rows, lines) for rows, lines in edges)


def _grows_at(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return True if the first line of `old` that is not blank is kept, with new lines between it and the edge."""
    edge = next((line.strip() for line in old if line.strip()), "")
    lines = [line.strip() for line in new if line.strip()]
    return edge in lines[1:] and lines[0] != edge


def _without_numbers(lines: Sequence[str]) -> list[str] | None:
    """The lines without the line numbers that a model copied from a listing; None when they have none."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(match[1]) for match in found if match]
    if not lines or len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    return [match[2] for match in found if match]


def _begins_line(text: str, start: int) -> bool:
    return not text[line_start(text, start) : start].strip()


def _ends_line(text: str, end: int) -> bool:
    newline = text.find("\n", end)
    return not text[end : len(text) if newline < 0 else newline].strip()


def _other_layout(text: str, search: str, replace: str, start: int, end: int) -> str | None:
    """The same words in another layout: the replacement begins where they begin, its further lines
    indented likewise. None where that is in doubt: both have several lines (then the drift is in their
    indentation), or part of a line is left over and the replacement has several lines."""
    there = text[start:end]
    if "\n" in search.strip() and "\n" in there:
        return None
    first = text[line_start(text, start) : start]
    lines = bare_lines(replace.strip())
    if first.strip() and len(lines) > 1:
        return None
    if not first.strip() and indent_of(first) != first:
        return None
    if len(lines) == 1 and "\n" not in search.strip() and "\n" not in there:
        kept = merge_blanks(search.strip(), lines[0], there)
        return splice(text, start, end, lines[0] if kept is None else kept)
    drift = learn_indents([search.strip("\r\n").split("\n")[0]], [first + "x"])
    head = lines[0].lstrip() if lines else ""
    further = lines[1:] if drift is None else [reindent(line, drift.pairs) for line in lines[1:]]
    body = "\n".join([head, *further])
    return splice(text, start, end, body.replace("\n", line_end_at(text, start)))
