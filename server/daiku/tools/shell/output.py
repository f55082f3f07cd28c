"""What a program prints: bounded in memory, decoded safely, without terminal escapes."""

from __future__ import annotations

import codecs
import re
from collections import deque

from daiku.guard.rules.redact import Redactor
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.patterns import lazy

KEPT_BYTES = 256 * 1024
"""Of each end of an output; what lies between is counted, not kept."""

_ESCAPES = lazy(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = lazy("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = lazy(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_UNFINISHED = lazy(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4096}|[ -/]*)?$")


_LONGEST_WORD = 400
"""Characters that live output holds back at most until it has the whole of a word."""
_IN_TOKENS = lazy(r"[0-9_-]")
_SHAPES = Redactor(())


def _redact_controlled(text: str) -> str:
    """Return `text` without tokens: without its controls they may not be recognized anymore, as letters meet."""
    return _SHAPES.redact_controlled(text) if "\x1b" in text or _CONTROLS.search(text) else text


def plain(text: str) -> str:
    """`text` as a person would have read it at the end: no escapes, no controls, overwritten lines gone."""
    text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text).replace("\r", "")
    return _CONTROLS.sub("", text)


class TruncatedOutput:
    """The first and the last bytes of an output, and how many there were."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take more output in, of any length."""
        self.total += len(data)
        if room := self._limit - len(self._head):
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._limit:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """The output as plain text; where bytes were dropped, a note says how many."""
        tail = b"".join(self._tail)[-self._limit :]
        dropped = self.total - len(self._head) - len(tail)
        if not dropped:
            return plain((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = plain(self._head.decode("utf-8", "replace"))
        return (
            f"{head}\n[… {dropped} bytes of output were not kept …]\n{plain(tail.decode('utf-8', 'replace'))}"
        )

    def shown(self, limit: int) -> str:
        """The text for a model: cut to `limit` characters, the decisive lines kept."""
        return truncate_output(self.text(), limit, "Send the output to a file or through grep, head or tail")


class LiveOutput:
    """Output as it comes, in pieces of plain text that never split a character, an escape, or a token."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text that can be shown now; `final` gives the rest."""
        text = self._held + self._decode(data, final)
        self._held = ""
        if not final:
            unfinished = _UNFINISHED.search(text) if "\x1b" in text[-4200:] else None
            at = unfinished.start() if unfinished else len(text) - text.endswith("\r")
            last = text[max(0, at - _LONGEST_WORD) : at].rsplit(maxsplit=1)[-1:]
            if last and text[:at].endswith(last[0]) and _IN_TOKENS.search(last[0]):
                at -= len(last[0])
            text, self._held = text[:at], text[at:]
        text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROLS.sub("", text)
