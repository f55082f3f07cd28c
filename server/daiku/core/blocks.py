"""SEARCH/REPLACE blocks in a model's reply: the path above, the old lines, the new lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from daiku.core.refusal import Refusal
from daiku.domain.patches import SearchReplace

_SEARCH = re.compile(r"(?:<{3,}|-{3,}) SEARCH>?")
_DIVIDER = re.compile(r"={3,}")
_REPLACE = re.compile(r"(?:>{3,}|\+{3,}) REPLACE")
_LIKE_A_MARKER = re.compile(r"[<>=+\-]+ ?(?:SEARCH|REPLACE|=+)\s*")
_HINT = re.compile(r":(?:start|end)_line:\s*\d+")
_ESCAPED = re.compile(r"\\(?=<{3,}|-{3,}|={3,}|>{3,}|\+{3,})")


@dataclass(frozen=True, slots=True)
class Block:
    """One edit; `path` is empty where none was named."""

    path: str
    edit: SearchReplace


def has_blocks(text: str) -> bool:
    return any(_SEARCH.fullmatch(line.rstrip("\r")) for line in text.split("\n"))


def parse_blocks(text: str) -> tuple[Block, ...] | Refusal:
    """All blocks of `text` in order, or what is malformed. A block without a path has the last one's."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    blocks: list[Block] = []
    index, path = 0, ""
    while index < len(lines):
        line = lines[index]
        if not _SEARCH.fullmatch(line):
            if _LIKE_A_MARKER.fullmatch(line) and not set(line) <= {"-", "="}:
                return Refusal(f"Line {index + 1} is no marker of a block: {line!r}. {_RIGHT}")
            index += 1
            continue
        path = _path_above(lines, index) or path
        parts = _parts(lines, index + 1)
        if isinstance(parts, Refusal):
            return parts
        search, replace, index = parts
        blocks.append(Block(path, SearchReplace(search=search, replace=replace)))
    return tuple(blocks) or Refusal(f"There is no SEARCH/REPLACE block. {_RIGHT}")


_RIGHT = "Right: <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE; each marker alone on its line."


def _parts(lines: Sequence[str], start: int) -> tuple[str, str, int] | Refusal:
    middle = _find(lines, start, _DIVIDER)
    if middle is None:
        return Refusal(f"The block at line {start} has no ======= line between old and new text. {_RIGHT}")
    end = _find(lines, middle + 1, _REPLACE)
    if end is None:
        return Refusal(
            f"The block at line {start} is not closed by >>>>>>> REPLACE: it may be cut off. {_RIGHT}"
        )
    search, replace = list(lines[start:middle]), list(lines[middle + 1 : end])
    hints = 0
    while hints < len(search) and _HINT.fullmatch(search[hints].strip()):
        hints += 1
    if hints and hints < len(search) and re.fullmatch(r"-{3,}", search[hints]):
        hints += 1
    return _text(search[hints:]), _text(replace), end + 1


def _find(lines: Sequence[str], start: int, marker: re.Pattern[str]) -> int | None:
    for index in range(start, len(lines)):
        if marker.fullmatch(lines[index]):
            return index
        if _SEARCH.fullmatch(lines[index]) or _REPLACE.fullmatch(lines[index]):
            return None
    return None


def _text(lines: Sequence[str]) -> str:
    return "".join(_ESCAPED.sub("", line, count=1) + "\n" for line in lines)


def _path_above(lines: Sequence[str], index: int) -> str:
    """The file's name on the line above, also above or inside the opening fence; else empty."""
    for line in reversed(lines[max(0, index - 3) : index]):
        if line.strip().startswith("```"):
            continue
        return _path_in(line)
    return ""


def _path_in(line: str) -> str:
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
