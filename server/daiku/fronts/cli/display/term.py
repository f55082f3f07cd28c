"""Terminal features, and text that is escaped and fitted for the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from typing import IO, Literal

from daiku.dataclass import dataclass
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.visible import show_hidden

Colour = Literal["bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan", "italic", "strike"]
_CODES: dict[Colour, str] = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
WIDEST = 2_000
"""Columns of a line without a terminal."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_JOINING = "\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef"
"""Characters whose display depends on their neighbors."""
_UNFINISHED = lazy(f"[{_JOINING}]*[^\x00-\x7f{_JOINING}](?:[{_JOINING}]+[^\x00-\x7f{_JOINING}])*")
"""Matches, on the reversed text, an end that following characters may join or change."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """An output stream, whether it is a live terminal, and whether it supports colors."""

    stream: IO[str]
    live: bool
    colours: bool

    @property
    def width(self) -> int:
        """Columns of the terminal, or of COLUMNS; 2,000 for a file or a pipe."""
        if not self.live and not os.environ.get("COLUMNS"):
            return WIDEST
        return max(20, shutil.get_terminal_size((80, 24)).columns)

    def paint(self, text: str, *colours: Colour) -> str:
        """Return `text` in `colours`, or unchanged if the terminal has no colors or none are given."""
        if not self.colours or not text or not colours:
            return text
        return f"\x1b[{';'.join(_CODES[c] for c in colours)}m{text}\x1b[0m"

    def write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def human_stream() -> Terminal:
    """Return the stream for human output: stderr, or stdout if only that is a terminal."""
    stream = sys.stdout if sys.stdout.isatty() and not sys.stderr.isatty() else sys.stderr
    return terminal(stream)


def terminal(stream: IO[str], environ: Mapping[str, str] = os.environ) -> Terminal:
    """Detect the features of a stream's terminal; respects `NO_COLOR`, `FORCE_COLOR`, and `TERM=dumb`."""
    live = stream.isatty() and environ.get("TERM") != "dumb"
    forced = environ.get("FORCE_COLOR", "") not in ("", "0")
    return Terminal(stream, live, (live or forced) and not environ.get("NO_COLOR"))


def person_present() -> bool:
    """Return True if the user can be asked: keyboard and screen are a terminal."""
    return sys.stdin.isatty() and (sys.stderr.isatty() or sys.stdout.isatty())


def safe(text: str) -> str:
    """Return untrusted text with control characters, and characters that hide or reorder text, escaped."""
    plain = text.replace("\r\n", "\n")
    return show_hidden(_CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", plain))


def split_unfinished(text: str) -> tuple[str, str]:
    """Split a streamed text before a last character that the next piece may join or change."""
    unfinished = _UNFINISHED.match(text[::-1])
    end = len(text) - (unfinished.end() if unfinished else 0)
    return text[:end], text[end:]


def columns(text: str) -> int:
    """Return the display width of `text` in columns; East Asian wide characters take two."""
    return sum(_width(char) for char in text)


def clip(text: str, width: int) -> str:
    """Return the text as one line of at most `width` columns."""
    line = " ".join(text.split())
    if columns(line) <= width:
        return line
    used, length = 0, 0
    for char in line:
        used += _width(char)
        if used > width - 1:
            break
        length += 1
    return line[:length] + "…"


def to_the_minute(time: str) -> str:
    """Return a journal time (ISO 8601) as date, hours, and minutes."""
    return time[:16].replace("T", " ")


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
