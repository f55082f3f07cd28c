"""Where the next character of an answer stands: in a line, in a block of code, in the arguments of a call."""

from __future__ import annotations

from daiku.core.replies.thoughtmarks import ARGUMENTS
from daiku.core.text.patterns import lazy

FENCE = lazy(r"`{3,}|~{3,}")
FENCE_SO_FAR = lazy(r"`+|~+")


class AnswerPosition:
    """Follows the text of an answer as it streams. A mark of thoughts counts only outside blocks of code and the
    arguments of calls, and most marks only where a line begins."""

    __slots__ = ("arguments", "blank", "fence", "info", "line")

    def __init__(self) -> None:
        self.blank = True
        """Nothing but blanks stands in this line."""
        self.fence = ""
        """What opened the block of code; empty outside of one."""
        self.info = False
        """Still in the line that opened the fence."""
        self.line: list[str] = []
        """The line from its first tag on."""
        self.arguments = False
        """In the arguments of a call."""

    def within_line(self, text: str) -> None:
        """Advance the position by a text without a line break."""
        if self.blank and text.strip():
            self.blank = False
        if self.line or "<" in text:
            self.line.append(text)
        if self.info and self.fence[0] == "`" and "`" in text:  # code in the line, not a block
            self.fence, self.info = "", False

    def after_lines(self, text: str) -> None:
        """Advance the position by a text that contains line breaks."""
        for line in text.splitlines(keepends=True) if text.count("\n") > 1 else (text,):
            before, newline, after = line.partition("\n")
            self.within_line(before)
            if newline:
                self._end_line()
                self.within_line(after)

    def _end_line(self) -> None:
        if self.line and not self.fence:
            for tag in ARGUMENTS.finditer("".join(self.line)):
                self.arguments = not tag[1]
        self.line.clear()
        self.blank, self.info = True, False
