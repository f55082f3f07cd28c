"""Bytes to JSON-RPC message bodies and back: a sans-I/O reader that survives whatever comes in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daiku.dataclass import dataclass, field

MAX_BODY = 256 * 1024 * 1024
"""Bytes. A larger Content-Length is taken for a mistake: nobody sends so much, and we would wait for it."""
MAX_HEADER = 16 * 1024

_LENGTH = re.compile(rb"(?i)content-length[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r?\n")
_FIELD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*[ \t]*:")
_BLANK = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that are no frame; `why` is told to the peer."""

    why: str


def frame(body: bytes) -> bytes:
    """`body` with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(slots=True)
class Frames:
    """Feed it bytes, iterate the bodies that are whole. Garbage is reported once and skipped."""

    _buffer: bytearray = field(default_factory=bytearray)
    _need: int = -1

    def feed(self, data: bytes) -> Iterator[bytes | BadFrame]:
        """Add `data`; yields bodies and what was wrong, in order."""
        self._buffer += data
        while (item := self._next()) is not None:
            yield item

    def push_back(self, body: bytes) -> None:
        """A body that is no JSON may have swallowed the next frame (a wrong Content-Length): read that
        frame again."""
        found = _LENGTH.search(body + bytes(self._buffer[:64]))
        if found is not None and 0 < found.start() < len(body):
            self._buffer[:0] = body[found.start() :]

    def end(self) -> BadFrame | None:
        """Handle the end of the input: return a BadFrame if a message was cut off."""
        cut = self._need >= 0 or bool(self._buffer.strip())
        return BadFrame("The input ended within a message.") if cut else None

    def unread_bytes(self) -> bytes:
        """What was fed and not yet given out; the reader is empty afterwards."""
        left = bytes(self._buffer)
        if self._need >= 0:
            left = b"Content-Length: %d\r\n\r\n" % self._need + left
        self._buffer.clear()
        self._need = -1
        return left

    def _next(self) -> bytes | BadFrame | None:
        if self._need < 0 and (problem := self._header()) is not None:
            return problem
        if 0 <= self._need <= len(self._buffer):
            body = bytes(self._buffer[: self._need])
            del self._buffer[: self._need]
            self._need = -1
            return body
        return None

    def _header(self) -> BadFrame | None:
        """Read one header block into `_need`, or say what is wrong with the bytes at hand."""
        buffer = self._buffer
        if buffer.startswith((b"\r", b"\n")):
            del buffer[: len(buffer) - len(buffer.lstrip(b"\r\n"))]
        blank = _BLANK.search(buffer)
        if blank is None:
            if len(buffer) <= MAX_HEADER:
                return None
            found = _LENGTH.search(buffer, 1)
            del buffer[: found.start() if found else len(buffer) - 32]
            return BadFrame("Bytes that are no message: a frame begins with `Content-Length: <bytes>`.")
        block = bytes(buffer[: blank.end()])
        # The last Content-Length before the blank line counts: what stands before it was cut short.
        lengths = list(_LENGTH.finditer(block))
        del buffer[: blank.end()]
        if not lengths:
            return BadFrame("A header without Content-Length.")
        value = lengths[-1][1]
        if not value.isdigit() or int(value[:20]) > MAX_BODY:
            shown = value[:40].decode("ascii", "replace")
            return BadFrame(f"Content-Length must be a number from 0 to {MAX_BODY}, not {shown!r}.")
        self._need = int(value)
        stray = block[: lengths[-1].start()]
        if any(line.strip() and not _FIELD.match(line) for line in stray.splitlines()):
            return BadFrame("Bytes between two messages were skipped.")
        return None
