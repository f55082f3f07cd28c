"""A unified diff for the terminal: escaped, colored, and truncated."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.fronts.cli.display.term import Terminal, safe
from daiku.texts.terminal import say


def coloured_diff(diff: str, terminal: Terminal, limit: int = 0) -> Iterator[str]:
    """Yield the colored lines of a diff; after `limit` lines (0: no limit) only the number of the rest."""
    lines = diff.removesuffix("\n").split("\n")
    for line in lines[: limit or len(lines)]:
        text = safe(line.removesuffix("\r"))
        if line.startswith(("+++", "---", "diff ", "rename ")):
            yield terminal.paint(text, "bold")
        elif line.startswith("@@"):
            yield terminal.paint(text, "cyan")
        elif line.startswith("+"):
            yield terminal.paint(text, "green")
        elif line.startswith("-"):
            yield terminal.paint(text, "red")
        else:
            yield text
    if limit and len(lines) > limit:
        yield terminal.paint(say("more_lines", count=len(lines) - limit), "dim")


def looks_like_diff(text: str) -> bool:
    """Return True if the text has lines of a diff near its beginning."""
    return any(line.startswith(("@@", "--- ", "+++ ", "diff ")) for line in text.split("\n", 12)[:12])
