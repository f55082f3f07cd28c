"""The lines of an output that decide what it means: failed tests, errors, summaries; they survive every cut."""

from __future__ import annotations

from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle

SHARE = 4
"""One part in so many of what is shown goes to decisive lines of the part that is left out."""
LONGEST = 300
"""Characters of one such line."""
MOST = 400
"""Lines that are told of one output."""

_STRONG = lazy(
    r"^E {3}|^(?:FAILED|ERROR|FAIL)\b|^\s*--- FAIL|^not ok\b|^\s*(?:[\w]+[.:]+)*\w*(?:Error|Exception)\b\s*(?::|$)"
    r"|\bpanicked at\b|^panic:|^\s*(?:fatal |internal )?error(?:\[\w+\])?:|:\d+(?::\d+)?: (?:fatal )?error\b|\berror TS\d+"
    r"|^=+ .*\b(?:passed|failed|errors?)\b.* =+$|^\s*Tests?:?\s.*\bfail|^test result:|^\s*\d+ (?:passing|failing)\b"
    r"|^\s*[✗✖✘×]|^Caused by:|^Segmentation fault|\bundefined reference\b|^\s*assert(?:ion)?\b.*\bfailed|^make.*\*\*\*"
    r"|^(?:FAILURES|ERRORS|FATAL)\b|^Ran \d+ tests?\b"
)
_WEAK = lazy(
    r"(?:Error|Exception)\b|\b(?:error|ERROR|[Ff]ailed|FAILED|[Ff]atal|FATAL|exception|[Aa]ssert\w*|[Aa]borted|CRITICAL)\b"
)
_MARKS = (
    "rror", "RROR", "xception", "fail", "Fail", "FAIL", "fatal", "Fatal", "FATAL", "panic", "not ok", "assed", "assing",
    "test result", "✗", "✖", "✘", "×", "ssert", "Caused by", "Segmentation", "undefined ref", "borted", "CRITICAL",
    "***", "Ran ", "E   ",
)  # fmt: skip
"""What a decisive line cannot be without: found at the speed of `in`, for an output may have millions of lines."""
_MOST_HITS = 5_000
"""Lines that are looked at closely for one mark: of more, the first."""


def weight(line: str) -> int:
    """How decisive a line looks: 2 for what tools print of failures and results, 1 for what may be one, 0 else."""
    return 2 if _STRONG.search(line) else 1 if _WEAK.search(line) else 0


def decisive_lines(text: str, room: int) -> list[tuple[int, str]]:
    """Return the most decisive lines of `text` with their line numbers, from 0, in order.

    Each text occurs once; together they have at most `room` characters.
    """
    found: dict[str, tuple[int, int]] = {}
    number, place = 0, 0
    for start in sorted(_lines_with_marks(text)):
        number += text.count("\n", place, start)
        place = start
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        if line not in found and (heavy := weight(line)):
            found[line] = (heavy, number)
    chosen: list[tuple[int, str]] = []
    for line, (_, at) in sorted(found.items(), key=lambda each: (-each[1][0], each[1][1])):
        shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
        if len(shown) + 1 > room or len(chosen) == MOST:
            break
        chosen.append((at, shown))
        room -= len(shown) + 1
    return sorted(chosen)


def _lines_with_marks(text: str) -> set[int]:
    """Where lines begin that hold one of the marks."""
    starts: set[int] = set()
    for mark in _MARKS:
        at = hits = 0
        while hits < _MOST_HITS and (at := text.find(mark, at)) >= 0:
            starts.add(text.rfind("\n", 0, at) + 1)
            end = text.find("\n", at)
            at, hits = (end if end >= 0 else len(text)), hits + 1
    return starts


def truncate_output(text: str, limit: int = OUTPUT_LIMIT, how: str = "") -> str:
    """Truncate `text` like `truncate_middle`, but keep the decisive lines of the middle, with marks for gaps.

    `how` tells how to see the rest.
    """
    if len(text) <= limit:
        return text
    share = limit // SHARE
    head_end, tail_start = limit // 2, len(text) - (limit - share - limit // 2)
    if (line_end := text.rfind("\n", max(0, head_end - limit // 10), head_end)) > 0:
        head_end = line_end + 1
    if (line_end := text.find("\n", tail_start, tail_start + limit // 10)) > 0:
        tail_start = line_end + 1
    middle = text[head_end:tail_start]
    kept = decisive_lines(middle, share)
    if not kept:
        return truncate_middle(text, limit, how)
    head = text[:head_end]
    gap = "" if head.endswith("\n") else "\n"
    return "\n".join([f"{head}{gap}{_with_marks(middle, kept, how)}", text[tail_start:]])


def _with_marks(middle: str, kept: list[tuple[int, str]], how: str) -> str:
    """Return the decisive lines of the omitted part, between markers that count the hidden lines."""
    count = middle.count("\n") + (not middle.endswith("\n"))
    amount = f"{count} lines, {len(middle)} characters"
    shown = [f"[… {amount} left out here but for the lines that look decisive{'. ' + how if how else ''} …]"]
    place = 0
    for at, line in kept:
        if at > place:
            shown.append(f"[… {at - place} lines …]")
        shown.append(line)
        place = at + 1
    if count > place:
        shown.append(f"[… {count - place} lines …]")
    return "\n".join(shown)
