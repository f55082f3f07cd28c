"""`File:` blocks of a coder's reply: a path, then the complete file in a fence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text

_HEADING = re.compile(
    r"[#>*\s]*File:\s*(?:\*\*)?\s*(?:`+([^`]+)`+|(\S.*?))\s*:?\s*(?:\*\*)?\s*:?\s*", re.IGNORECASE
)
_WRAPPER = re.compile(r"~~~\w*\s*")
_FENCE = re.compile(r"(\s*)(`{3,}|~{4,})(.*)")


@dataclass(frozen=True, slots=True)
class FileBlocks:
    """The parsed blocks of a reply.

    `files` maps paths to contents, in order. `unclosed` is the path of a block without an end, `doubtful` of
    one with an ambiguous end, `outside` of ignored ones outside the `~~~` wrapper. `rest` is the text outside
    the blocks.
    """

    files: dict[str, str]
    warnings: tuple[Text, ...] = ()
    unclosed: str = ""
    rest: str = ""
    outside: tuple[str, ...] = ()
    doubtful: str = ""


def parse_file_blocks(reply: str) -> FileBlocks:
    """Parse all `File:` blocks of `reply`.

    If there is a `~~~` wrapper, text outside it is ignored with a warning. The last block of a path wins. A
    block whose fence is unclosed or ambiguous is ignored.
    """
    lines = _strip_outer_fence([line.removesuffix("\r") for line in reply.split("\n")])
    blocks: list[tuple[int, str, str]] = []
    marks: list[int] = []
    warnings: list[Text] = []
    rest: list[str] = []
    unclosed, doubtful, index = "", "", 0
    while index < len(lines):
        path = _parse_path(lines[index])
        fence = _find_fence(lines, index + 1) if path else None
        if not path or fence is None:
            following = _skip_line(lines, index, marks)
            rest += (line for line in lines[index:following] if not _WRAPPER.fullmatch(line))
            index = following
            continue
        ends = _find_closing_lines(lines, fence, path)
        if len(ends) != 1:
            unclosed, doubtful = ("", path) if ends else (path, "")
            warnings.append(text("files.fence_doubtful" if ends else "files.fence_open", path=path))
            break
        blocks.append((index, path, "".join(f"{line}\n" for line in lines[fence + 1 : ends[0]])))
        index = ends[0] + 1
    start, stop = (marks[0], marks[-1] if len(marks) > 1 else len(lines)) if marks else (-1, len(lines))
    files: dict[str, str] = {}
    for at, path, content in blocks:
        if start < at < stop:
            if files.pop(path, None) is not None:
                warnings.append(text("files.given_twice", path=path))
            files[path] = content
    outside = tuple(
        dict.fromkeys(path for at, path, _ in blocks if not start < at < stop and path not in files)
    )
    warnings += (text("files.outside_wrapper", path=path) for path in outside)
    return FileBlocks(files, tuple(warnings), unclosed, "\n".join(rest), outside, doubtful)


def begins_with_file(text: str) -> bool:
    """Return True if the text starts with a `File:` block, ignoring a wrapper."""
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not re.fullmatch(r"(?:~~~|```)\w*", line.strip())
    ]
    return bool(lines) and bool(_parse_path(lines[0]))


def _strip_outer_fence(lines: list[str]) -> list[str]:
    """Return the lines of a reply without a fence around all of it."""
    full = [index for index, line in enumerate(lines) if line.strip()]
    if len(full) < 3 or not _FENCE.fullmatch(lines[full[0]]) or not _parse_path(lines[full[1]]):
        return lines
    opening, last = _FENCE.fullmatch(lines[full[0]]), _FENCE.fullmatch(lines[full[-1]])
    if opening is None or last is None or last[3].strip() or last[2] != opening[2]:
        return lines
    return lines[full[0] + 1 : full[-1]]


def _skip_line(lines: Sequence[str], index: int, marks: list[int]) -> int:
    """Return the index after this line, or after the fence that it opens.

    Append a wrapper's index to `marks`.
    """
    if _WRAPPER.fullmatch(lines[index]):
        marks.append(index)
    elif (opening := _FENCE.fullmatch(lines[index])) and opening[2][0] == "`":
        for end in range(index + 1, len(lines)):
            if (
                (inner := _FENCE.fullmatch(lines[end]))
                and not inner[3].strip()
                and _can_close(inner, opening)
            ):
                return end + 1
            if _parse_path(lines[end]) and _find_fence(lines, end + 1) is not None:
                break
    return index + 1


def render_file_blocks(files: Iterable[tuple[str, str]]) -> str:
    """Render `File:` blocks of (path, content) for `parse_file_blocks`; fences fit the content."""
    return "\n\n".join(_render_block(path, content) for path, content in files)


def _render_block(path: str, content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    tag = path.rpartition("/")[2].rpartition(".")[2] if "." in path.rpartition("/")[2] else ""
    end = "" if content.endswith("\n") or not content else "\n"
    return f"File: `{path}`:\n{fence}{tag}\n{content}{end}{fence}"


def _parse_path(line: str) -> str:
    match = _HEADING.fullmatch(line)
    return (match[1] or match[2] or "").strip().strip("*").strip() if match else ""


def _find_fence(lines: Sequence[str], start: int) -> int | None:
    """Return the index of the opening fence that follows, ignoring blank lines; None if there is none."""
    for index in range(start, len(lines)):
        if _FENCE.fullmatch(lines[index]):
            return index
        if lines[index].strip():
            return None
    return None


def _find_closing_lines(lines: Sequence[str], opening: int, path: str) -> list[int]:
    """Return the lines that may close the fence: as long, nothing after it, all other fences in pairs.

    If several qualify, the first wins if a blank line follows it.
    """
    first = _FENCE.fullmatch(lines[opening])
    assert first is not None
    fences: list[tuple[int, re.Match[str]]] = []
    for index in range(opening + 1, len(lines)):
        inner = _FENCE.fullmatch(lines[index])
        if inner is not None and _can_close(inner, first) and len(inner[1]) <= len(first[1]):
            fences.append((index, inner))
        elif _parse_path(lines[index]) and (after := _find_fence(lines, index + 1)) is not None:
            another = _FENCE.fullmatch(lines[after])
            if another is not None and _can_close(another, first):
                break
    ends = [
        index
        for number, (index, fence) in enumerate(fences)
        if not fence[3].strip()
        and _are_paired([inner for _, inner in fences[:number]])
        and _are_paired([inner for _, inner in fences[number + 1 :]])
    ]
    if len(ends) > 1 and path.endswith((".py", ".pyi")):
        ends = [end for end in ends if not _is_in_quotes(lines[opening + 1 : end])] or ends
    blank_below = len(ends) > 1 and not lines[ends[0] + 1].strip()
    return ends[:1] if blank_below else ends


def _can_close(fence: re.Match[str], opening: re.Match[str]) -> bool:
    return fence[2][0] == opening[2][0] and len(fence[2]) >= len(opening[2])


def _are_paired(fences: Sequence[re.Match[str]]) -> bool:
    """Return True if every opened fence is closed."""
    open_fence: re.Match[str] | None = None
    for fence in fences:
        if open_fence is None:
            open_fence = fence
        elif not fence[3].strip() and _can_close(fence, open_fence):
            open_fence = None
    return open_fence is None


def _is_in_quotes(lines: Sequence[str]) -> bool:
    """Return True if a multi-line string is still open after these lines."""
    text = "\n".join(lines)
    return any(text.count(quote) % 2 for quote in ('"""', "'''"))
