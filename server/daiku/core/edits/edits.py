"""Apply search-and-replace edits to a text: exact match first, then tolerant; ambiguous ones are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from daiku.core.edits.elisions import fill_elisions
from daiku.core.edits.lines import bare_lines, edit_lines
from daiku.core.matching.hunk import Replacement, hunk_of
from daiku.core.matching.indents import indent_of
from daiku.core.matching.insert import line_end_at, replacement_for
from daiku.core.matching.match import BlockMatch, Level, line_start
from daiku.core.matching.refusal import AS_WANTED, Refusal, ambiguous
from daiku.core.text.omissions import may_hold_omission
from daiku.domain.work.patches import SearchReplace

_OPENERS = (":", "{", "(", "[", ",", "\\")
"""What a line ends with whose next line belongs deeper."""
_DEFINITION = re.compile(
    r"(?:@|#|//|(?:async|def|class|export|function|const|let|var|fn|func|pub|public|type|interface|struct|impl)\b)"
)


def apply_edits(
    text: str, edits: Sequence[SearchReplace], *, path: str = "", insisted: bool = False
) -> str | Refusal:
    """`text` after all `edits`, one after the other, or why one of them cannot be done (then none is).

    A search is literal and must stand in exactly one place; an empty one stands before the first line. Line ends of the file are kept. A search that is
    one whole line without its indentation gives its indentation to every line of the replacement; a search
    that stands nowhere is looked for as whole lines (`edit_lines`), and in another layout of the same words.
    For `path` and `insisted` see `elisions.fill`.
    """
    if not edits:
        return Refusal("There are no edits.")
    new = text
    for number, edit in enumerate(edits, 1):
        changed = _apply(new, edit, path, insisted=insisted)
        if isinstance(changed, Refusal):
            return changed if len(edits) == 1 else changed.within(f"Edit {number} of {len(edits)}")
        new = changed
    return _outcome(text, new)


def apply_block(
    text: str, search: str, replace: str, *, path: str = "", insisted: bool = False
) -> str | Refusal:
    """`text` with the lines `replace` for the whole lines `search`, or why that cannot be done."""
    if not search.strip() and text.strip():
        return Refusal("the SEARCH part is empty but the file is not: say which lines are to be replaced.")
    new = edit_lines(text, search, replace, path=path, insisted=insisted) if search else replace
    return new if isinstance(new, Refusal) else _outcome(text, new)


def _outcome(text: str, new: str) -> str | Refusal:
    if new == text:
        return Refusal(AS_WANTED, as_wanted=True)
    if _blank(new) and not _blank(text):
        return Refusal("The edits would leave the file empty. Delete it or write it whole if that is meant.")
    return new


def _blank(text: str) -> bool:
    return not text or text.isspace()


def _apply(text: str, edit: SearchReplace, path: str, *, insisted: bool) -> str | Refusal:
    search, replace = edit.search, edit.replace
    if not search:
        if _blank(text) or replace.endswith("\n"):
            return _ends(text, 0, replace) + text
        return Refusal(
            "The search is empty but the file is not: say which text is to be replaced. Lines for the top of"
            " the file need a line end."
        )
    if search == replace and search in text:
        return text
    at = text.find(search)
    if at >= 0 and may_hold_omission(replace):
        filled = fill_elisions(bare_lines(replace), bare_lines(search), path=path, insisted=insisted)
        if isinstance(filled, Refusal):
            return filled
        if filled != bare_lines(replace):
            replace = "\n".join(filled) + ("\n" if replace.endswith("\n") else "")
            edit = edit.model_copy(update={"replace": replace})
    if at >= 0:
        return _exact(text, edit, search, at)
    for variant in _line_end_variants(text, search):
        if (at := text.find(variant)) >= 0:
            return _exact(text, edit, variant, at)
    if search.endswith("\n") and text.endswith(search[:-1]):
        at = len(text) - len(search) + 1
        if not text[line_start(text, at) : at].strip():
            new = _for_place(text, search[:-1], replace.removesuffix("\n"), at)
            return new if isinstance(new, Refusal) else text[: new.start] + new.new
    return edit_lines(text, search, replace, within_lines=True, path=path, insisted=insisted)


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
    if edit.replace_all:
        return _everywhere(text, search, edit.replace, at)
    if text.find(search, at + 1) >= 0:
        return ambiguous(text, _all_offsets(text, search), ", or set replace_all to change all of them")
    place = _for_place(text, search, edit.replace, at)
    if isinstance(place, Refusal):
        return place
    if place.start == at:
        return text.replace(search, place.new, 1)
    return "".join((text[: place.start], place.new, text[place.end :]))


def _everywhere(text: str, search: str, replace: str, at: int) -> str | Refusal:
    if "\n" not in replace:
        return text.replace(search, replace)
    parts: list[str] = []
    done = 0
    while at >= 0:
        place = _for_place(text, search, replace, at)
        if isinstance(place, Refusal):
            return place
        parts += (text[done : place.start], place.new)
        done = place.end
        at = text.find(search, max(done, at + 1))
    return "".join([*parts, text[done:]])


def _for_place(text: str, search: str, replace: str, at: int) -> Replacement | Refusal:
    """The replacement as it goes to that place: with the file's line ends, and, for one whole line that was
    searched without its indentation, with that indentation on every line."""
    if "\n" in replace and (line := _bare_line(text, search, at)) is not None:
        lines = bare_lines(replace)
        match _reading(lines, indent_of(line.lines[0])):
            case "lines":
                return replacement_for(text, hunk_of(bare_lines(search), lines, line.levels), line)
            case "doubt":
                return Refusal(
                    "The search is a line without its indentation, so the indentation of the replacement's"
                    " lines is in doubt: give the line to be replaced and the new ones with all of theirs."
                )
            case "literal":
                pass
    return Replacement(at, at + len(search), _ends(text, at, replace))


def _bare_line(text: str, search: str, at: int) -> BlockMatch | None:
    """The line of the file that is `search` but for its indentation, line end apart; None where it is no such line."""
    start, end = line_start(text, at), at + len(search)
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


def _reading(lines: Sequence[str], indent: str) -> Literal["lines", "literal", "doubt"]:
    """Whether the lines of a replacement lack `indent` as the search does, or only the first one does. A new
    definition after a blank line could be meant either way."""
    further = [number for number, line in enumerate(lines) if number and line.strip()]
    shallow = [number for number in further if not lines[number].startswith(indent)]
    if not further:
        return "literal"
    if not shallow:
        opens = lines[0].rstrip().endswith(_OPENERS)
        return "lines" if opens and indent_of(lines[further[0]]) == indent else "literal"
    if not lines[shallow[0] - 1].strip() and _DEFINITION.match(lines[shallow[0]]):
        return "doubt" if further[0] == shallow[0] else "literal"
    return "lines"


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
