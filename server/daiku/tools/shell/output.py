"""Output of programs: bounded in memory, decoded safely, without terminal escapes."""

from __future__ import annotations

import codecs
import re
from collections import deque

from daiku.guard.rules.redact import Redactor
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.patterns import lazy

KEPT_BYTES = 256 * 1024
"""Bytes that are stored of each end of an output. Bytes between the ends are only counted."""

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


_MAX_WORD = 400
"""Characters that live output holds back at most until a word is complete."""
_TOKEN_CHARACTER = lazy(r"[0-9_-]")
_REDACTOR = Redactor(())


def _redact_controlled(text: str) -> str:
    """Redact tokens before controls are removed: without them, letters join and tokens are not recognized."""
    return _REDACTOR.redact_controlled(text) if "\x1b" in text or _CONTROLS.search(text) else text


def to_plain(text: str) -> str:
    """Return `text` as it finally looks on a terminal: without escapes, controls, and overwritten lines."""
    text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text).replace("\r", "")
    return _CONTROLS.sub("", text)


class TruncatedOutput:
    """The first and last bytes of an output, and its total size."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Add output of any length."""
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
        """Return the output as plain text, with a note of how many bytes were dropped."""
        tail = b"".join(self._tail)[-self._limit :]
        dropped = self.total - len(self._head) - len(tail)
        if not dropped:
            return to_plain((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = to_plain(self._head.decode("utf-8", "replace"))
        return f"{head}\n[… {dropped} bytes of output were not kept …]\n{to_plain(tail.decode('utf-8', 'replace'))}"

    def format_for_model(self, limit: int) -> str:
        """Return the output for a model: cut to `limit` characters, with the decisive lines."""
        return truncate_output(self.text(), limit, "Send the output to a file or through grep, head or tail")


class LiveOutput:
    """Incremental output as plain text, in pieces that never split a character, an escape, or a token."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that can be shown now; `final` returns the rest."""
        text = self._pending + self._decode(data, final)
        self._pending = ""
        if not final:
            unfinished = _UNFINISHED.search(text) if "\x1b" in text[-4200:] else None
            end = unfinished.start() if unfinished else len(text) - text.endswith("\r")
            last_word = text[max(0, end - _MAX_WORD) : end].rsplit(maxsplit=1)[-1:]
            if last_word and text[:end].endswith(last_word[0]) and _TOKEN_CHARACTER.search(last_word[0]):
                end -= len(last_word[0])
            text, self._pending = text[:end], text[end:]
        text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROLS.sub("", text)
