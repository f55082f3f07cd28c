"""`File:` blocks of a coder's reply: a path, then the whole file in a fence (seed 0, C0.9, C0.12, C0.17)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_HEADING = re.compile(
    r"[#>*\s]*File:\s*(?:\*\*)?\s*(?:`+([^`]+)`+|(\S.*?))\s*:?\s*(?:\*\*)?\s*:?\s*", re.IGNORECASE
)
_FENCE = re.compile(r"(\s*)(`{3,}|~{4,})(.*)")


@dataclass(frozen=True, slots=True)
class FileBlocks:
    """Path to whole content, in order of appearance, and what was odd about the reply. `unclosed` is the
    path of a block that never ends, `rest` what stands outside the blocks."""

    files: dict[str, str]
    warnings: tuple[str, ...] = ()
    unclosed: str = ""
    rest: str = ""


def parse_file_blocks(text: str) -> FileBlocks:
    """All `File:` blocks of `text`. What stands outside a `~~~` wrapper is ignored where there is one; a
    path that comes twice has its last content. A fence that is never closed is not taken."""
    whole = [line.removesuffix("\r") for line in text.split("\n")]
    start, stop = _wrapped(whole)
    lines = whole[start:stop]
    files: dict[str, str] = {}
    warnings: list[str] = []
    unclosed, rest, index = "", whole[: max(0, start - 1)], 0
    while index < len(lines):
        path = _path(lines[index])
        fence = _fence_after(lines, index + 1) if path else None
        if not path or fence is None:
            rest.append(lines[index])
            index += 1
            continue
        end = _closing(lines, fence)
        if end is None:
            warnings.append(f"{path}: its code fence is never closed; the reply may be cut off")
            unclosed = path
            break
        if path in files:
            warnings.append(f"{path}: given twice, the last one counts")
            del files[path]
        files[path] = "".join(f"{line}\n" for line in lines[fence + 1 : end])
        index = end + 1
    return FileBlocks(files, tuple(warnings), unclosed, "\n".join([*rest, *whole[stop + 1 :]]))


def render_file_blocks(files: Iterable[tuple[str, str]]) -> str:
    """`File:` blocks of (path, content), as `parse_file_blocks` reads them back; fences fit the content."""
    return "\n\n".join(_block(path, content) for path, content in files)


def _block(path: str, content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    tag = path.rpartition("/")[2].rpartition(".")[2] if "." in path.rpartition("/")[2] else ""
    return f"File: `{path}`:\n{fence}{tag}\n{content}{'' if content.endswith(chr(10)) else chr(10)}{fence}"


def _wrapped(lines: Sequence[str]) -> tuple[int, int]:
    """From where to where the lines are that stand between the first and the last `~~~` outside code fences."""
    marks: list[int] = []
    index = 0
    while index < len(lines):
        if re.fullmatch(r"~~~\w*\s*", lines[index]):
            marks.append(index)
        elif (match := _FENCE.fullmatch(lines[index])) and match[2][0] == "`":
            end = _closing(lines, index)
            index = end if end is not None else index
        index += 1
    if len(marks) < 2:
        return marks[0] + 1 if marks else 0, len(lines)
    return marks[0] + 1, marks[-1]


def _path(line: str) -> str:
    match = _HEADING.fullmatch(line)
    return (match[1] or match[2] or "").strip().strip("*").strip() if match else ""


def _fence_after(lines: Sequence[str], start: int) -> int | None:
    """The opening fence that follows, blank lines apart."""
    for index in range(start, len(lines)):
        if _FENCE.fullmatch(lines[index]):
            return index
        if lines[index].strip():
            return None
    return None


def _closing(lines: Sequence[str], opening: int) -> int | None:
    """The line that closes the fence: as many marks or more, and nothing behind. Fences of the same
    length with a language tag inside it are taken for pairs (a Markdown file with code in it)."""
    match = _FENCE.fullmatch(lines[opening])
    assert match is not None
    mark, tag = match[2], match[3].strip().lower()
    nested = tag in ("markdown", "md", "mdx", "rst")
    depth = 0
    for index in range(opening + 1, len(lines)):
        inner = _FENCE.fullmatch(lines[index])
        if inner is None or inner[2][0] != mark[0] or len(inner[2]) < len(mark):
            if (
                depth == 0
                and _path(lines[index])
                and _fence_after(lines, index + 1) == index + 1
                and not nested
            ):
                return None
            continue
        if inner[3].strip():
            depth += nested
        elif depth:
            depth -= 1
        else:
            return index
    return None
