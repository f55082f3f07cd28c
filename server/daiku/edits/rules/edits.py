"""Search-and-replace edits of a text: exact match first, then tolerant; ambiguous ones are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.elisions import build_elided_hunk, fill_elisions
from daiku.edits.rules.hunks import apply_hunks
from daiku.edits.rules.matching.hunk import (
    Replacement,
    build_hunk,
    build_replacement,
    find_line_end,
    merge_blanks,
    splice,
)
from daiku.edits.rules.matching.indents import get_indent, learn_indents, reindent
from daiku.edits.rules.matching.match import (
    BlockMatch,
    Level,
    find_ignoring_blank_lines,
    find_line_start,
    find_lines,
    find_tokens,
    find_windows,
    is_evenly_indented,
)
from daiku.edits.rules.matching.refusal import AS_WANTED, Refusal, refuse_ambiguous, refuse_not_found
from daiku.texts.rules.omissions import may_hold_omission

_NUMBERED = re.compile(r"\s*(\d+) ?[|│→\t] ?(.*)", re.DOTALL)


def _edit_lines(
    text: str,
    search: str,
    replace: str,
    *,
    within_lines: bool = False,
    path: str = "",
    insisted: bool = False,
) -> str | Refusal:
    """Replace the one place whose lines match those of `search`.

    Whitespace, uniform indentation, look-alike punctuation, blank lines at the edges, copied line numbers,
    and layout may differ. `within_lines`: the same tokens may also be a part of a line.
    """
    old, new = _split_bare_lines(search), _split_bare_lines(replace)
    if not search.endswith("\n") and not replace:
        new = [""]  # the line is emptied, not removed: the search has no line end
    elided = build_elided_hunk(old, new)
    if elided is not None and not find_lines(text, old):
        return elided if isinstance(elided, Refusal) else apply_hunks(text, [elided])
    filled = fill_elisions(new, old, path=path, insisted=insisted)
    if isinstance(filled, Refusal):
        return filled
    new = filled
    if _grows_beside_blanks(old, new) and not find_lines(text, old):
        return refuse_not_found(text, old)
    for old_lines, lines in _list_readings(old, new):
        spans = find_lines(text, old_lines)
        if len(spans) == 1 and spans[0].level <= Level.trailing:
            spans += _find_indented_matches(text, old_lines)
        if spans and spans[0].level >= Level.indent:  # lines that differ in blank lines only also count
            spans = [*spans, *_find_unblanked_matches(text, old_lines, spans)]
        if len(spans) > 1:
            return refuse_ambiguous(text, [span.start for span in spans])
        if spans:
            return _replace_span(text, old_lines, lines, spans[0])
    tokens = find_tokens(text, search)
    if not within_lines:
        tokens = [place for place in tokens if _begins_line(text, place[0])]
    if not within_lines or search.endswith("\n"):
        tokens = [place for place in tokens if _ends_line(text, place[1])]
    if len(tokens) > 1:
        return refuse_ambiguous(text, [start for start, _ in tokens])
    if (
        tokens
        and (reformatted := _replace_other_layout(text, search, "\n".join(new), *tokens[0])) is not None
    ):
        return reformatted
    return refuse_not_found(text, old)


def _find_indented_matches(text: str, old: Sequence[str]) -> list[BlockMatch]:
    """Return the indented places of unindented lines: the search may have lost its indentation."""
    if all(line != line.lstrip() for line in old if line.strip()):
        return []
    return [s for s in find_windows(text, old) if s.level >= Level.indent and is_evenly_indented(old, s)]


def _find_unblanked_matches(text: str, old: Sequence[str], spans: Sequence[BlockMatch]) -> list[BlockMatch]:
    """Return the other places of `old` that differ in blank lines only."""
    known_starts = {span.start for span in spans}
    starts = [start for start in find_ignoring_blank_lines(text, old) if start not in known_starts]
    return [BlockMatch(start, start, (), ()) for start in starts]


def _split_bare_lines(text: str) -> list[str]:
    """Return the lines without line ends. A final newline starts no further line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _replace_span(
    text: str, search: Sequence[str], replace: Sequence[str], span: BlockMatch
) -> str | Refusal:
    place = build_replacement(text, build_hunk(search, replace, span.levels), span)
    return place if isinstance(place, Refusal) else _splice_replacement(text, place)


def _splice_replacement(text: str, place: Replacement) -> str:
    return splice(text, place.start, place.end, place.new)


def _list_readings(old: list[str], new: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the edit unchanged, without copied line numbers, and without blank lines at the edges."""
    readings = [(old, new)]
    if (plain := _strip_line_numbers(old)) is not None:
        unnumbered = _strip_line_numbers(new)
        readings.append((plain, unnumbered if unnumbered is not None else new))
    first = next((n for n, line in enumerate(old) if line.strip()), 0)
    last = next((n for n, line in enumerate(reversed(old)) if line.strip()), 0)
    if first or last:
        blank_above = next((n for n, line in enumerate(new) if line.strip()), len(new))
        trimmed = new[min(first, blank_above) :]
        blank_below = next((n for n, line in enumerate(reversed(trimmed)) if line.strip()), len(trimmed))
        readings.append((old[first : len(old) - last], trimmed[: len(trimmed) - min(last, blank_below)]))
    return readings


def _grows_beside_blanks(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return True if lines are added next to a blank line at an edge of the search, which is ambiguous."""
    edges = [(old, new), (old[::-1], new[::-1])]
    return any(rows and not rows[0].strip() and _grows_at(rows, lines) for rows, lines in edges)


def _grows_at(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return True if the first non-blank line of `old` is kept and new lines come between it and the edge."""
    edge = next((line.strip() for line in old if line.strip()), "")
    lines = [line.strip() for line in new if line.strip()]
    return edge in lines[1:] and lines[0] != edge


def _strip_line_numbers(lines: Sequence[str]) -> list[str] | None:
    """Return the lines without line numbers copied from a listing; None if they have none."""
    matches = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match]
    if not lines or len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    return [match[2] for match in matches if match]


def _begins_line(text: str, start: int) -> bool:
    return not text[find_line_start(text, start) : start].strip()


def _ends_line(text: str, end: int) -> bool:
    newline = text.find("\n", end)
    return not text[end : len(text) if newline < 0 else newline].strip()


def _replace_other_layout(text: str, search: str, replace: str, start: int, end: int) -> str | None:
    """Replace the same tokens in another layout, indented like the first line.

    Return None if both have several lines, or if several new lines would follow a part of a line.
    """
    current = text[start:end]
    if "\n" in search.strip() and "\n" in current:
        return None
    first = text[find_line_start(text, start) : start]
    lines = _split_bare_lines(replace.strip())
    if first.strip() and len(lines) > 1:
        return None
    if not first.strip() and get_indent(first) != first:
        return None
    if len(lines) == 1 and "\n" not in search.strip() and "\n" not in current:
        merged = merge_blanks(search.strip(), lines[0], current)
        return splice(text, start, end, lines[0] if merged is None else merged)
    drift = learn_indents([search.strip("\r\n").split("\n")[0]], [first + "x"])
    head = lines[0].lstrip() if lines else ""
    further = lines[1:] if drift is None else [reindent(line, drift.pairs) for line in lines[1:]]
    body = "\n".join([head, *further])
    return splice(text, start, end, body.replace("\n", find_line_end(text, start)))


_OPENERS = (":", "{", "(", "[", ",", "\\")
"""Line ends after which the next line is indented deeper."""
_DEFINITION = re.compile(
    r"(?:@|#|//|(?:async|def|class|export|function|const|let|var|fn|func|pub|public|type|interface|struct|impl)\b)"
)


def apply_edits(
    text: str, edits: Sequence[SearchReplace], *, path: str = "", insisted: bool = False
) -> str | Refusal:
    """Return `text` after all `edits` in order, or the Refusal of the first that fails (none is applied)."""
    if not edits:
        return Refusal("There are no edits.")
    new = text
    for number, edit in enumerate(edits, 1):
        changed = _apply_edit(new, edit, path, insisted=insisted)
        if isinstance(changed, Refusal):
            return changed if len(edits) == 1 else changed.within(f"Edit {number} of {len(edits)}")
        new = changed
    return _check_outcome(text, new)


def apply_block(
    text: str, search: str, replace: str, *, path: str = "", insisted: bool = False
) -> str | Refusal:
    """Return `text` with the complete lines `search` replaced by `replace`, or a Refusal."""
    if not search.strip() and text.strip():
        return Refusal("the SEARCH part is empty but the file is not: say which lines are to be replaced.")
    new = _edit_lines(text, search, replace, path=path, insisted=insisted) if search else replace
    return new if isinstance(new, Refusal) else _check_outcome(text, new)


def _check_outcome(text: str, new: str) -> str | Refusal:
    if new == text:
        return Refusal(AS_WANTED, as_wanted=True)
    if _is_blank(new) and not _is_blank(text):
        return Refusal("The edits would leave the file empty. Delete it or write it whole if that is meant.")
    return new


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _apply_edit(text: str, edit: SearchReplace, path: str, *, insisted: bool) -> str | Refusal:
    search, replace = edit.search, edit.replace
    if not search:
        if _is_blank(text) or replace.endswith("\n"):
            return _with_line_ends(text, 0, replace) + text
        return Refusal(
            "The search is empty but the file is not: say which text is to be replaced. Lines for the top of"
            " the file need a line end."
        )
    if search == replace and search in text:
        return text
    at = text.find(search)
    if at >= 0 and may_hold_omission(replace):
        filled = fill_elisions(
            _split_bare_lines(replace), _split_bare_lines(search), path=path, insisted=insisted
        )
        if isinstance(filled, Refusal):
            return filled
        if filled != _split_bare_lines(replace):
            replace = "\n".join(filled) + ("\n" if replace.endswith("\n") else "")
            edit = edit.model_copy(update={"replace": replace})
    if at >= 0:
        return _replace_exact(text, edit, search, at)
    for variant in _list_line_end_variants(text, search):
        if (at := text.find(variant)) >= 0:
            return _replace_exact(text, edit, variant, at)
    if search.endswith("\n") and text.endswith(search[:-1]):
        at = len(text) - len(search) + 1
        if not text[find_line_start(text, at) : at].strip():
            new = _build_replacement_at(text, search[:-1], replace.removesuffix("\n"), at)
            return new if isinstance(new, Refusal) else text[: new.start] + new.new
    return _edit_lines(text, search, replace, within_lines=True, path=path, insisted=insisted)


def _list_line_end_variants(text: str, search: str) -> list[str]:
    """Return the search with the other line ends, if that can make a difference."""
    plain = search.replace("\r\n", "\n")
    if plain != search:
        return [plain, plain.replace("\n", "\r\n")]
    return [search.replace("\n", "\r\n")] if "\n" in search and "\r" in text else []


def _replace_exact(text: str, edit: SearchReplace, search: str, at: int) -> str | Refusal:
    """Replace an exact match: check that it is unique, then splice once, to copy large texts rarely."""
    if search[0] == "\n" and at and text[at - 1] == "\r":
        search, at = "\r" + search, at - 1
    if edit.replace_all:
        return _replace_everywhere(text, search, edit.replace, at)
    if text.find(search, at + 1) >= 0:
        return refuse_ambiguous(text, _find_all(text, search), ", or set replace_all to change all of them")
    place = _build_replacement_at(text, search, edit.replace, at)
    if isinstance(place, Refusal):
        return place
    if place.start == at:
        return text.replace(search, place.new, 1)
    return "".join((text[: place.start], place.new, text[place.end :]))


def _replace_everywhere(text: str, search: str, replace: str, at: int) -> str | Refusal:
    if "\n" not in replace:
        return text.replace(search, replace)
    parts: list[str] = []
    copied = 0
    while at >= 0:
        place = _build_replacement_at(text, search, replace, at)
        if isinstance(place, Refusal):
            return place
        parts += (text[copied : place.start], place.new)
        copied = place.end
        at = text.find(search, max(copied, at + 1))
    return "".join([*parts, text[copied:]])


def _build_replacement_at(text: str, search: str, replace: str, at: int) -> Replacement | Refusal:
    """Return the replacement with the file's line ends, and the line's indentation if the search lacks it."""
    if "\n" in replace and (line := _find_unindented_line(text, search, at)) is not None:
        lines = _split_bare_lines(replace)
        match _classify_indentation(lines, get_indent(line.lines[0])):
            case "lines":
                return build_replacement(
                    text, build_hunk(_split_bare_lines(search), lines, line.levels), line
                )
            case "doubt":
                return Refusal(
                    "The search is a line without its indentation, so the indentation of the replacement's"
                    " lines is in doubt: give the line to be replaced and the new ones with all of theirs."
                )
            case "literal":
                pass
    return Replacement(at, at + len(search), _with_line_ends(text, at, replace))


def _find_unindented_line(text: str, search: str, at: int) -> BlockMatch | None:
    """Return the line of the file that equals `search` except for its indentation; None if there is none."""
    start, end = find_line_start(text, at), at + len(search)
    indent = text[start:at]
    if not indent or not indent.isspace() or "\n" in search.removesuffix("\n") or not search[:1].strip():
        return None
    if not search.endswith("\n") and end < len(text):
        newline = text.find("\n", end)
        newline = len(text) if newline < 0 else newline
        if text[end:newline] not in ("", "\r"):
            return None
        end = min(newline + 1, len(text))
    line = text[start:end].removesuffix("\n")
    return BlockMatch(start, end, (line,), (Level.indent,))


def _classify_indentation(lines: Sequence[str], indent: str) -> Literal["lines", "literal", "doubt"]:
    """Return whether all lines of a replacement lack `indent`, like the search, or only the first."""
    further = [number for number, line in enumerate(lines) if number and line.strip()]
    shallow = [number for number in further if not lines[number].startswith(indent)]
    if not further:
        return "literal"
    if not shallow:
        opens = lines[0].rstrip().endswith(_OPENERS)
        return "lines" if opens and get_indent(lines[further[0]]) == indent else "literal"
    if not lines[shallow[0] - 1].strip() and _DEFINITION.match(lines[shallow[0]]):
        return "doubt" if further[0] == shallow[0] else "literal"
    return "lines"


def _with_line_ends(text: str, at: int, replace: str) -> str:
    """Return the replacement with the line ends that the file has at that offset."""
    if "\n" not in replace:
        return replace
    plain = replace.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if find_line_end(text, at) == "\r\n" else plain


def _find_all(text: str, search: str) -> list[int]:
    offsets, at = list[int](), text.find(search)
    while at >= 0 and len(offsets) < 1000:
        offsets.append(at)
        at = text.find(search, at + 1)
    return offsets
