"""Parser of SEARCH/REPLACE blocks: the path above, the old lines, the new lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.dataclass import dataclass
from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.matching.refusal import Refusal

_SEARCH = re.compile(r"(?:<{3,}|-{3,}) SEARCH>?")
_DIVIDER = re.compile(r"={3,}")
_REPLACE = re.compile(r"(?:>{3,}|\+{3,}) REPLACE")
_LIKE_A_MARKER = re.compile(r"[<>=+\-]+ ?(?:SEARCH|REPLACE|=+)\s*")
_CONFLICT = re.compile(r"<{7} (?!SEARCH)")
_CONFLICT_END = re.compile(r">{7} (?!REPLACE)")
_HINT = re.compile(r":(?:start|end)_line:\s*\d+")
_ESCAPED = re.compile(r"\\(?=<{3,}|-{3,}|={3,}|>{3,}|\+{3,})")


@dataclass(frozen=True, slots=True)
class EditBlock:
    """One edit. `path` is empty if none was named."""

    path: str
    edit: SearchReplace


def has_blocks(text: str) -> bool:
    return any(_SEARCH.fullmatch(line.rstrip("\r")) for line in text.split("\n"))


def parse_blocks(text: str) -> tuple[EditBlock, ...] | Refusal:
    """Parse all blocks of `text` in order, or return a Refusal.

    A block without a path has the previous one's.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    blocks: list[EditBlock] = []
    index, path = 0, ""
    while index < len(lines):
        line = lines[index]
        if not _SEARCH.fullmatch(line):
            if _LIKE_A_MARKER.fullmatch(line) and not set(line) <= {"-", "="}:
                return Refusal(f"Line {index + 1} is no marker of a block: {line!r}. {_RIGHT}")
            index += 1
            continue
        path = _find_path_above(lines, index) or path
        parts = _read_block(lines, index + 1)
        if isinstance(parts, Refusal):
            return parts
        search, replace, index = parts
        blocks.append(EditBlock(path, SearchReplace(search=search, replace=replace)))
    return tuple(blocks) or Refusal(f"There is no SEARCH/REPLACE block. {_RIGHT}")


_RIGHT = "Right: <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE; each marker alone on its line."


def _read_block(lines: Sequence[str], start: int) -> tuple[str, str, int] | Refusal:
    end = _find_end(lines, start)
    dividers = [i for i in range(start, len(lines) if end is None else end) if _DIVIDER.fullmatch(lines[i])]
    if not dividers:
        return Refusal(f"The block at line {start} has no ======= line between old and new text. {_RIGHT}")
    if end is None:
        return Refusal(
            f"The block at line {start} is not closed by >>>>>>> REPLACE: it may be cut off. {_RIGHT}"
        )
    middle = _find_divider(lines, start, end, dividers)
    if middle is None:
        return Refusal(
            f"The block at line {start} has {len(dividers)} lines of =, and which of them parts old and new text is"
            " not certain. Put a backslash before those that belong to the text (\\=======), or use files__edit."
        )
    search, replace = list(lines[start:middle]), list(lines[middle + 1 : end])
    hints = 0
    while hints < len(search) and _HINT.fullmatch(search[hints].strip()):
        hints += 1
    if hints and hints < len(search) and re.fullmatch(r"-{3,}", search[hints]):
        hints += 1
    return _join_text(search[hints:]), _join_text(replace), end + 1


def _find_end(lines: Sequence[str], start: int) -> int | None:
    """Return the index of the line that closes the block; None if another block or the end comes first."""
    for index in range(start, len(lines)):
        if _REPLACE.fullmatch(lines[index]):
            return index
        if _SEARCH.fullmatch(lines[index]):
            return None
    return None


def _find_divider(lines: Sequence[str], start: int, end: int, dividers: Sequence[int]) -> int | None:
    """Return the index of the line between old and new text; None if it is ambiguous.

    It is outside merge conflicts the only divider, or the only one as long as the opening marker.
    """
    depth = 0
    outside: list[int] = []
    for index in range(start, end):
        if _CONFLICT.match(lines[index]):
            depth += 1
        elif _CONFLICT_END.match(lines[index]):
            depth -= 1
        elif index in dividers and depth == 0:
            outside.append(index)
        if depth not in (0, 1):
            return None
    if depth or not outside:
        return None
    if len(outside) == 1:
        return outside[0]
    length = len(lines[start - 1].split(" ")[0])
    as_long = [index for index in outside if len(lines[index]) == length]
    return as_long[0] if len(as_long) == 1 else None


def _join_text(lines: Sequence[str]) -> str:
    return "".join(_ESCAPED.sub("", line, count=1) + "\n" for line in lines)


def _find_path_above(lines: Sequence[str], index: int) -> str:
    """Return the file name on the line above, around the opening fence, or after the fence's language."""
    for line in reversed(lines[max(0, index - 3) : index]):
        if fence := re.match(r"\s*`{3,}\s*(.*)", line):
            if path := _parse_path(fence[1].split(" ")[-1]) if " " in fence[1].strip() else "":
                return path
            continue
        return _parse_path(line)
    return ""


def _parse_path(line: str) -> str:
    words = (
        line.strip()
        .strip("*#`")
        .strip()
        .removesuffix(":")
        .strip("`")
        .removeprefix("File:")
        .strip()
        .strip("`")
    )
    plausible = words and " " not in words and not words.startswith(("<", ">", "=", "..."))
    return words if plausible and re.search(r"[\w/]", words) else ""
