"""Streaming Markdown: color headings, emphasis, code, and lists without delaying text."""

from __future__ import annotations

import re

from daiku.fronts.cli.display.term import Terminal

_INLINE = re.compile(r"(`[^`\n]+`|\*\*[^*\n]+\*\*)")
_BLOCK = re.compile(r"^(\s*)(#{1,6}\s|>|[-*+]\s|\d+[.)]\s)")


class Markdown:
    """Converts pieces of text to terminal output; without colors the text is unchanged."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._held = ""
        self._at_start = True
        self._fence = ""

    def feed(self, piece: str) -> str:
        if not self._terminal.colours:
            return piece
        self._held += piece
        out: list[str] = []
        while "\n" in self._held:
            line, _, self._held = self._held.partition("\n")
            out.append(self._rest_of_line(line) + "\n")
            self._at_start = True
        out.append(self._early())
        return "".join(out)

    def close(self) -> str:
        """Return the pending rest at the end of a text."""
        line, self._held = self._held, ""
        rest = self._rest_of_line(line) if line else ""
        self._at_start, self._fence = True, ""
        return rest

    def _early(self) -> str:
        """Return the part of an unfinished line that later characters cannot change."""
        text = self._held
        if not text or (self._at_start and (len(text) < 4 or text.lstrip()[:1] in ("#", "`", "~", ">"))):
            return ""
        if self._fence:
            self._held, self._at_start = "", False
            return self._terminal.paint(text, "cyan")
        mark = min((i for i in (text.find("`"), text.find("**")) if i >= 0), default=len(text))
        if mark == len(text) and text.endswith("*"):
            mark -= 1
        if mark == 0:
            return ""
        ready, self._held = text[:mark], text[mark:]
        styled = self._start(ready) if self._at_start else ready
        self._at_start = False
        return styled

    def _rest_of_line(self, line: str) -> str:
        paint, stripped = self._terminal.paint, line.lstrip()
        if self._at_start and stripped[:3] in ("```", "~~~"):
            self._fence = "" if self._fence else stripped[:3]
            return paint(line, "dim")
        if self._fence:
            return paint(line, "cyan")
        if self._at_start and stripped.startswith("#"):
            return paint(line, "bold")
        if self._at_start and stripped.startswith(">"):
            return paint(line, "dim")
        inline = _INLINE.sub(self._inline, line)
        return self._start(inline) if self._at_start else inline

    def _start(self, text: str) -> str:
        match = _BLOCK.match(text)
        if match is None:
            return text
        return match[1] + self._terminal.paint(match[2], "yellow") + text[match.end() :]

    def _inline(self, match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith("`"):
            return self._terminal.paint(text, "cyan")
        return self._terminal.paint(text[2:-2], "bold")
