"""Parsers of unified diffs as models write them, and of the apply-patch format."""

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


_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*", re.DOTALL)
_NAME = re.compile(r"(?:---|\+\+\+)[ \t]+(.*)")
_NO_NEWLINE = "\\ No newline"
_NULL = "/dev/null"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The diff of one file. `old` is None if it is created, `new` if it is deleted."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()
    renamed: bool = False


def is_udiff(text: str) -> bool:
    return bool(re.search(r"^(?:diff --git |--- .*\r?\n\+\+\+ )", text, re.MULTILINE))


def parse_udiff(text: str) -> tuple[FileDiff, ...] | Refusal:
    """Parse the files of a unified diff in order, or return a Refusal."""
    if re.search(r"^(?:GIT binary patch|Binary files .* differ)", text, re.MULTILINE):
        return Refusal("A binary patch cannot be applied: only text files can be changed.")
    lines = _strip_body(text)
    files: list[FileDiff] = []
    index = 0
    while index < len(lines):
        if lines[index].startswith("diff --git ") or _starts_file(lines, index):
            parsed = _parse_file(lines, index)
            if isinstance(parsed, Refusal):
                return parsed
            file, index = parsed
            files.append(file)
        elif lines[index].startswith("@@"):
            return Refusal(f"Line {index + 1} begins a hunk, but no --- and +++ lines name its file.")
        else:
            index += 1
    return tuple(files) or Refusal(
        "There is no file in this diff: it needs --- and +++ lines, then @@ hunks."
    )


def _strip_body(text: str) -> list[str]:
    """Return the lines without a fence around them, and without CR if every line has one."""
    lines = text.removesuffix("\n").split("\n")
    if all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    while lines and not lines[0].strip():
        lines = lines[1:]
    if lines and lines[0].startswith("```"):
        lines = lines[1 : -1 if lines[-1].strip() == "```" else None]
    return lines


def _starts_file(lines: Sequence[str], index: int) -> bool:
    return lines[index].startswith("--- ") and index + 1 < len(lines) and lines[index + 1].startswith("+++ ")


def _parse_file(lines: Sequence[str], index: int) -> tuple[FileDiff, int] | Refusal:
    old: str | None = None
    new: str | None = None
    extended: dict[str, str] = {}
    if lines[index].startswith("diff --git "):
        if match := re.fullmatch(r'diff --git "?a/(.*?)"? "?b/(.*?)"?', lines[index].rstrip()):
            old, new = match[1], match[2]
        index += 1
        while index < len(lines) and not lines[index].startswith(("diff --git ", "@@", "--- ")):
            if match := re.match(
                r"(rename from|rename to|copy to|new file|deleted file) ?(.*)", lines[index]
            ):
                extended[match[1]] = match[2]
            elif lines[index] and not re.match(
                r"(?:index|similarity|dissimilarity|old mode|new mode|copy)", lines[index]
            ):
                break
            index += 1
    if "copy to" in extended:
        return Refusal("A copy cannot be applied: add the new file with its whole content instead.")
    if index < len(lines) and _starts_file(lines, index):
        old, new = _parse_names(lines[index], lines[index + 1])
        index += 2
    elif "new file" in extended:
        old = None
    elif "deleted file" in extended:
        new = None
    old, new = extended.get("rename from", old), extended.get("rename to", new)
    if old is None and new is None:
        return Refusal("A file of the diff has no name.")
    hunks, index = _parse_hunks(lines, index)
    return FileDiff(old, new, tuple(hunks), "rename to" in extended), index


def _parse_names(old_line: str, new_line: str) -> tuple[str | None, str | None]:
    old, new = (_parse_name(line) for line in (old_line, new_line))
    if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
        return old and old[2:], new and new[2:]
    return old, new


def _parse_name(line: str) -> str | None:
    match = _NAME.match(line)
    name = (match[1] if match else "").split("\t")[0].strip()
    if name.startswith('"') and name.endswith('"'):
        name = _unquote(name[1:-1])
    return None if name in ("", _NULL) else name


def _unquote(name: str) -> str:
    """Decode a quoted file name of git, which writes non-ASCII characters as octal bytes."""
    data = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), name)
    data = data.replace('\\"', '"').replace("\\\\", "\\").replace("\\t", "\t")
    try:
        return data.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return data


def _parse_hunks(lines: Sequence[str], index: int) -> tuple[list[Hunk], int]:
    hunks: list[Hunk] = []
    while (
        index < len(lines) and not lines[index].startswith("diff --git ") and not _starts_file(lines, index)
    ):
        if not lines[index].startswith("@@"):
            index += 1
            continue
        hunk, index = _parse_hunk(lines, index)
        hunks.append(hunk)
    return hunks, index


def _parse_hunk(lines: Sequence[str], index: int) -> tuple[Hunk, int]:
    match = _HEADER.fullmatch(lines[index])
    start = index + 1
    if match:
        old_count, new_count = int(match[2] or 1), int(match[4] or 1)
        end = _find_end_by_counts(lines, start, old_count, new_count)
        if end is not None:
            return replace(_read_hunk(lines[start:end]), line=int(match[1])), end
    end = _find_boundary(lines, start)
    while end > start and not lines[end - 1].strip():
        end -= 1  # blank lines before the next file are not context
    return replace(_read_hunk(lines[start:end]), line=int(match[1]) if match else None), max(end, start)


def _find_end_by_counts(lines: Sequence[str], start: int, old: int, new: int) -> int | None:
    """Return the hunk's end by its own counts; None if they do not lead to a boundary."""
    index = start
    while index < len(lines) and (old > 0 or new > 0 or lines[index].startswith(_NO_NEWLINE)):
        mark = lines[index][:1]
        old -= mark in ("-", " ", "")
        new -= mark in ("+", " ", "")
        if mark not in ("-", "+", " ", "", "\\"):
            return None
        index += 1
    if old or new:
        return None
    at_boundary = index >= len(lines) or not lines[index].strip() or _find_boundary(lines, index) == index
    return index if at_boundary else None


def _find_boundary(lines: Sequence[str], start: int) -> int:
    """Return the index of the next line that starts a hunk or file, or the end."""
    for index in range(start, len(lines)):
        if lines[index].startswith(("@@", "diff --git ", "Index: ")) or _starts_file(lines, index):
            return index
    return len(lines)


def _read_hunk(lines: Sequence[str]) -> Hunk:
    hunk_lines: list[HunkLine] = []
    final_newline: bool | None = None
    for line in lines:
        if line.startswith(_NO_NEWLINE):
            if hunk_lines:
                final_newline = (
                    final_newline
                    if hunk_lines[-1].tag == "-" and final_newline is False
                    else hunk_lines[-1].tag == "-"
                )
            continue
        hunk_lines.append(parse_hunk_line(line))
    return Hunk(tuple(hunk_lines), final_newline=final_newline)
