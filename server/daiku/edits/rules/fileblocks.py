"""`File:` blocks of a coder's reply: a path, then the whole file in a fence (seed 0, C0.9, C0.12, C0.17)."""

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
    """Path to content, in order. `unclosed`: the path of a block that never ends, `doubtful`: of one whose end is
    ambiguous, `outside`: of ignored ones outside the `~~~` wrapper. `rest`: the text outside the blocks."""

    files: dict[str, str]
    warnings: tuple[Text, ...] = ()
    unclosed: str = ""
    rest: str = ""
    outside: tuple[str, ...] = ()
    doubtful: str = ""


def parse_file_blocks(reply: str) -> FileBlocks:
    """Parse all `File:` blocks of `reply`. If there is a `~~~` wrapper, text outside it is ignored with a warning.
    The last block for a path wins; a block whose fence is unclosed or ambiguous is ignored."""
    lines = _strip_outer_fence([line.removesuffix("\r") for line in reply.split("\n")])
    found: list[tuple[int, str, str]] = []
    marks: list[int] = []
    warnings: list[Text] = []
    rest: list[str] = []
    unclosed, doubtful, index = "", "", 0
    while index < len(lines):
        path = _path(lines[index])
        fence = _fence_after(lines, index + 1) if path else None
        if not path or fence is None:
            following = _skip_line(lines, index, marks)
            rest += (line for line in lines[index:following] if not _WRAPPER.fullmatch(line))
            index = following
            continue
        ends = _closings(lines, fence, path)
        if len(ends) != 1:
            unclosed, doubtful = ("", path) if ends else (path, "")
            warnings.append(text("files.fence_doubtful" if ends else "files.fence_open", path=path))
            break
        found.append((index, path, "".join(f"{line}\n" for line in lines[fence + 1 : ends[0]])))
        index = ends[0] + 1
    start, stop = (marks[0], marks[-1] if len(marks) > 1 else len(lines)) if marks else (-1, len(lines))
    files: dict[str, str] = {}
    for at, path, content in found:
        if start < at < stop:
            if files.pop(path, None) is not None:
                warnings.append(text("files.given_twice", path=path))
            files[path] = content
    outside = tuple(
        dict.fromkeys(path for at, path, _ in found if not start < at < stop and path not in files)
    )
    warnings += (text("files.outside_wrapper", path=path) for path in outside)
    return FileBlocks(files, tuple(warnings), unclosed, "\n".join(rest), outside, doubtful)


def begins_with_file(text: str) -> bool:
    """Whether the first thing in the text, a wrapper apart, is a `File:` block."""
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not re.fullmatch(r"(?:~~~|```)\w*", line.strip())
    ]
    return bool(lines) and bool(_path(lines[0]))


def _strip_outer_fence(lines: list[str]) -> list[str]:
    """The lines of a reply that stands in a fence as a whole, without that fence."""
    full = [index for index, line in enumerate(lines) if line.strip()]
    if len(full) < 3 or not _FENCE.fullmatch(lines[full[0]]) or not _path(lines[full[1]]):
        return lines
    opening, last = _FENCE.fullmatch(lines[full[0]]), _FENCE.fullmatch(lines[full[-1]])
    if opening is None or last is None or last[3].strip() or last[2] != opening[2]:
        return lines
    return lines[full[0] + 1 : full[-1]]


def _skip_line(lines: Sequence[str], index: int, marks: list[int]) -> int:
    """The line after this one, which begins no file, or after the fence that it opens; a wrapper's mark is noted."""
    if _WRAPPER.fullmatch(lines[index]):
        marks.append(index)
    elif (opening := _FENCE.fullmatch(lines[index])) and opening[2][0] == "`":
        for end in range(index + 1, len(lines)):
            if (inner := _FENCE.fullmatch(lines[end])) and not inner[3].strip() and _as_long(inner, opening):
                return end + 1
            if _path(lines[end]) and _fence_after(lines, end + 1) is not None:
                break
    return index + 1


def render_file_blocks(files: Iterable[tuple[str, str]]) -> str:
    """`File:` blocks of (path, content), as `parse_file_blocks` reads them back; fences fit the content."""
    return "\n\n".join(_block(path, content) for path, content in files)


def _block(path: str, content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    tag = path.rpartition("/")[2].rpartition(".")[2] if "." in path.rpartition("/")[2] else ""
    end = "" if content.endswith("\n") or not content else "\n"
    return f"File: `{path}`:\n{fence}{tag}\n{content}{end}{fence}"


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


def _closings(lines: Sequence[str], opening: int, path: str) -> list[int]:
    """Return the lines that may close the fence: no shorter, nothing after it, and all other fences in pairs. Of
    several, the first counts if a blank line follows."""
    first = _FENCE.fullmatch(lines[opening])
    assert first is not None
    fences: list[tuple[int, re.Match[str]]] = []
    for index in range(opening + 1, len(lines)):
        inner = _FENCE.fullmatch(lines[index])
        if inner is not None and _as_long(inner, first) and len(inner[1]) <= len(first[1]):
            fences.append((index, inner))
        elif _path(lines[index]) and (after := _fence_after(lines, index + 1)) is not None:
            another = _FENCE.fullmatch(lines[after])
            if another is not None and _as_long(another, first):
                break
    ends = [
        index
        for number, (index, fence) in enumerate(fences)
        if not fence[3].strip()
        and _in_pairs([inner for _, inner in fences[:number]])
        and _in_pairs([inner for _, inner in fences[number + 1 :]])
    ]
    if len(ends) > 1 and path.endswith((".py", ".pyi")):
        ends = [end for end in ends if not _in_quotes(lines[opening + 1 : end])] or ends
    blank_below = len(ends) > 1 and not lines[ends[0] + 1].strip()
    return ends[:1] if blank_below else ends


def _as_long(fence: re.Match[str], opening: re.Match[str]) -> bool:
    return fence[2][0] == opening[2][0] and len(fence[2]) >= len(opening[2])


def _in_pairs(fences: Sequence[re.Match[str]]) -> bool:
    """Whether every fence that is opened is closed."""
    opened: re.Match[str] | None = None
    for fence in fences:
        if opened is None:
            opened = fence
        elif not fence[3].strip() and _as_long(fence, opened):
            opened = None
    return opened is None


def _in_quotes(lines: Sequence[str]) -> bool:
    """Whether a text in quotes of several lines goes on behind the last of these lines."""
    text = "\n".join(lines)
    return any(text.count(quote) % 2 for quote in ('"""', "'''"))
