"""Parser of the apply-patch format: `*** Begin Patch`, files to add, update, delete or move, `@@` anchors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from daiku.dataclass import dataclass, replace
from daiku.edits.rules.matching.hunk import Hunk, HunkLine, parse_hunk_line
from daiku.edits.rules.matching.refusal import Refusal

_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: *(.+?)\s*")
_MOVE = re.compile(r"\*\*\* Move to: *(.+?)\s*")
_BEGINS = re.compile(r"^(?:[ \t]*\*\*\* Begin Patch\s*$|\*\*\* (?:Add|Update|Delete) File: )", re.MULTILINE)
_NUMBERS = re.compile(r"@@+ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_END_OF_FILE = "*** End of File"


@dataclass(frozen=True, slots=True)
class FileOp:
    """One file operation of a patch. `content` is that of an added file."""

    kind: Literal["add", "update", "delete"]
    path: str
    to: str | None = None
    content: str = ""
    hunks: tuple[Hunk, ...] = ()


def is_apply_patch(text: str) -> bool:
    return bool(_BEGINS.search(text))


def parse_apply_patch(text: str) -> tuple[FileOp, ...] | Refusal:
    """Parse the patch's file operations in order, or return a Refusal. A missing end means a truncated reply."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begins = [i for i, line in enumerate(lines) if line.strip() == "*** Begin Patch"]
    ends = [i for i, line in enumerate(lines) if line.strip() == "*** End Patch"]
    if begins and not ends:
        return Refusal("The patch has no `*** End Patch` line: it may be cut off.")
    body = lines[begins[0] + 1 : ends[-1]] if begins else lines[: ends[-1] if ends else len(lines)]
    ops: list[FileOp] = []
    index = 0
    while index < len(body):
        match = _FILE.fullmatch(body[index].strip())
        if match is None:
            if body[index].strip():
                return Refusal(
                    f"Line {index + 1} of the patch is neither `*** Add File: `, `*** Update File: ` nor "
                    f"`*** Delete File: `: {body[index][:200]!r}"
                )
            index += 1
            continue
        end = next((i for i in range(index + 1, len(body)) if _FILE.fullmatch(body[i])), len(body))
        if match[1] == "Delete":
            end = index + 1
        op = _parse_op(match[1], match[2], body[index + 1 : end])
        if isinstance(op, Refusal):
            return op.within(match[2])
        ops.append(op)
        index = end
    return tuple(ops) or Refusal("The patch names no file.")


def _parse_op(verb: str, path: str, lines: Sequence[str]) -> FileOp | Refusal:
    match verb:
        case "Delete":
            return FileOp("delete", path)
        case "Add":
            return _parse_added(path, lines)
        case _:
            return _parse_updated(path, lines)


def _parse_added(path: str, lines: Sequence[str]) -> FileOp | Refusal:
    body = list(lines)
    while body and not body[-1].strip() and not body[-1].startswith("+"):
        body.pop()
    wrong = next((line for line in body if not line.startswith("+") and line.strip()), None)
    if wrong is not None:
        return Refusal(f"Every line of an added file begins with +, this does not: {wrong[:200]!r}")
    return FileOp("add", path, content="".join(line[1:] + "\n" for line in body))


def _parse_updated(path: str, lines: Sequence[str]) -> FileOp | Refusal:
    to: str | None = None
    body = list(lines)
    if body and (match := _MOVE.fullmatch(body[0])):
        to, body = match[1], body[1:]
    hunks: list[Hunk] = []
    anchors: list[str] = []
    hunk_lines: list[HunkLine] = []
    number: int | None = None

    def close(*, at_end: bool) -> None:
        if hunk_lines:
            hunks.append(Hunk(tuple(hunk_lines), number, tuple(anchors), at_end))
            anchors.clear()
            hunk_lines.clear()

    for line in body:
        if line.startswith("@@"):
            close(at_end=False)
            number, anchor = _parse_hunk_head(line)
            if anchor:
                anchors.append(anchor)
        elif line.strip() == _END_OF_FILE:
            close(at_end=True)
        elif line.startswith("***"):
            return Refusal(f"This line has no place in an update: {line[:200]!r}")
        else:
            hunk_lines.append(parse_hunk_line(line))
    close(at_end=False)
    if len(hunks) == 1 and hunks[0].line is None and not hunks[0].anchors and not hunks[0].old():
        # A hunk of added lines only goes to the end of the file.
        hunks = [replace(hunks[0], at_end=True, placed=hunks[0].at_end)]
    if not any(hunk.changes for hunk in hunks) and to is None:
        return Refusal("The update has no lines that begin with + or -: it changes nothing.")
    return FileOp("update", path, to=to, hunks=tuple(hunks))


def _parse_hunk_head(line: str) -> tuple[int | None, str]:
    """Return a hunk head's line number (as in a unified diff) and its anchor."""
    if match := _NUMBERS.match(line):
        return int(match[1]), ""
    return None, line[2:].removesuffix("@@").strip()
