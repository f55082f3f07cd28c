"""Search-and-replace edits of one text: exact first, then with drift, refused where there is doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.core.hunks import line_end_at, put_lines, splice
from daiku.core.match import find_lines, find_tokens, indent_map, indent_of, line_start, reindent
from daiku.core.refusal import Refusal, ambiguous, not_found
from daiku.domain.patches import SearchReplace

_NUMBERED = re.compile(r"\s*(\d+) ?[|│→\t] ?(.*)", re.DOTALL)


def apply_edits(text: str, edits: Sequence[SearchReplace]) -> str | Refusal:
    """`text` after all `edits`, one after the other, or why one of them cannot be done (then none is).

    A search must stand in exactly one place; an empty one stands before the first line. Line ends of the file are kept; a search of several lines
    is also found where only blanks at line ends, indentation (the same in all lines), look-alike
    punctuation or the layout between the same words differ, if that is in one place only.
    """
    if not edits:
        return Refusal("There are no edits.")
    new = text
    for number, edit in enumerate(edits, 1):
        changed = _apply(new, edit)
        if isinstance(changed, Refusal):
            return changed if len(edits) == 1 else changed.within(f"Edit {number} of {len(edits)}")
        new = changed
    if new == text:
        return Refusal("The edits change nothing: the file is already as it should become.")
    if _blank(new) and not _blank(text):
        return Refusal("The edits would leave the file empty. Delete it or write it whole if that is meant.")
    return new


def _blank(text: str) -> bool:
    return not text or text.isspace()


def _apply(text: str, edit: SearchReplace) -> str | Refusal:
    search, replace = edit.search, edit.replace
    if not search:
        return _ends(text, 0, replace) + text
    if search == replace:
        return Refusal("Search and replacement are the same: nothing would change.")
    at = text.find(search)
    if at >= 0:
        return _exact(text, edit, search, at)
    for variant in _line_end_variants(text, search):
        if (at := text.find(variant)) >= 0:
            return _exact(text, edit, variant, at)
    if search.endswith("\n") and text.endswith(search[:-1]):
        return text[: len(text) - len(search) + 1] + _ends(text, len(text) - 1, replace.removesuffix("\n"))
    return _drifted(text, search, replace)


def _line_end_variants(text: str, search: str) -> list[str]:
    """The search with the other line ends, where that can make a difference."""
    plain = search.replace("\r\n", "\n")
    if plain != search:
        return [plain, plain.replace("\n", "\r\n")]
    return [search.replace("\n", "\r\n")] if "\n" in search and "\r" in text else []


def _exact(text: str, edit: SearchReplace, search: str, at: int) -> str | Refusal:
    """Nothing here looks at more of `text` than it must: uniqueness, then one splice."""
    if search[0] == "\n" and at and text[at - 1] == "\r":
        search, at = "\r" + search, at - 1
    replace = _ends(text, at, edit.replace)
    if edit.replace_all:
        return text.replace(search, replace)
    if text.find(search, at + 1) >= 0:
        return ambiguous(text, _all_offsets(text, search), ", or set replace_all to change all of them")
    return text.replace(search, replace, 1)


def _ends(text: str, at: int, replace: str) -> str:
    """The replacement with the line ends that the file has at that place."""
    if "\n" not in replace:
        return replace
    plain = replace.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if line_end_at(text, at) == "\r\n" else plain


def _all_offsets(text: str, search: str) -> list[int]:
    found, at = list[int](), text.find(search)
    while at >= 0 and len(found) < 1000:
        found.append(at)
        at = text.find(search, at + 1)
    return found


def _drifted(text: str, search: str, replace: str) -> str | Refusal:
    wanted, new = _lines(search), _lines(replace)
    spans = find_lines(text, wanted)
    if not spans and (plain := _without_numbers(wanted)) is not None:
        unnumbered = _without_numbers(new)
        wanted, new = plain, unnumbered if unnumbered is not None else new
        spans = find_lines(text, wanted)
    if len(spans) > 1:
        return ambiguous(text, [span.start for span in spans])
    if spans:
        if not search.endswith("\n") and not replace:
            new = [""]  # the line is emptied, not taken out: its line end was not part of the search
        return put_lines(text, wanted, new, spans[0])
    tokens = find_tokens(text, search)
    if len(tokens) > 1:
        return ambiguous(text, [start for start, _ in tokens])
    if tokens and (laid_out := _other_layout(text, search, replace, *tokens[0])) is not None:
        return laid_out
    return not_found(text, wanted)


def _lines(text: str) -> list[str]:
    """The lines without line ends; a final newline begins no further line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _without_numbers(lines: Sequence[str]) -> list[str] | None:
    """The lines without the line numbers that a model copied from a listing; None when they have none."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(match[1]) for match in found if match]
    if not lines or len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    return [match[2] for match in found if match]


def _other_layout(text: str, search: str, replace: str, start: int, end: int) -> str | None:
    """The same words in another layout: the replacement begins where they begin, its further lines
    indented likewise. None where that is in doubt: both have several lines (then the drift is in their
    indentation), or part of a line is left over and the replacement has several lines."""
    if "\n" in search.strip() and "\n" in text[start:end]:
        return None
    first = text[line_start(text, start) : start]
    lines = _lines(replace.strip())
    if first.strip() and len(lines) > 1:
        return None
    pairs = indent_map([search.strip("\r\n").split("\n")[0]], [first + "x"]) or {}
    head = lines[0].lstrip() if lines else ""
    body = [head, *(reindent(line, pairs) for line in lines[1:])]
    if not first.strip() and indent_of(first) != first:
        return None
    return splice(text, start, end, _ends(text, start, "\n".join(body)))
