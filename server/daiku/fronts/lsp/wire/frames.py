"""JSON-RPC framing: a sans-I/O parser that tolerates any input."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daiku.dataclass import dataclass, field

MAX_BODY = 256 * 1024 * 1024
"""Maximum bytes of a body. A larger Content-Length is an error, so that the parser does not wait for it."""
MAX_HEADER = 16 * 1024
"""Maximum bytes of a header."""

_LENGTH = re.compile(rb"(?i)content-length[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r?\n")
_FIELD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*[ \t]*:")
_BLANK = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that are not a frame; `why` is sent to the peer."""

    why: str


def frame(body: bytes) -> bytes:
    """Return `body` with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(slots=True)
class Frames:
    """Incremental parser: feed it bytes, iterate the complete bodies. Garbage is reported once and skipped."""

    _buffer: bytearray = field(default_factory=bytearray)
    _need: int = -1

    def feed(self, data: bytes) -> Iterator[bytes | BadFrame]:
        """Add `data`; yield bodies and errors in order."""
        self._buffer += data
        while (item := self._next()) is not None:
            yield item

    def push_back(self, body: bytes) -> None:
        """Parse the frame again that an invalid body swallowed because of a wrong Content-Length."""
        match = _LENGTH.search(body + bytes(self._buffer[:64]))
        if match is not None and 0 < match.start() < len(body):
            self._buffer[:0] = body[match.start() :]

    def end(self) -> BadFrame | None:
        """Handle the end of the input: return a BadFrame if a message was cut off."""
        cut = self._need >= 0 or bool(self._buffer.strip())
        return BadFrame("The input ended within a message.") if cut else None

    def unread_bytes(self) -> bytes:
        """Return and remove the bytes that were fed and not yet parsed."""
        unread = bytes(self._buffer)
        if self._need >= 0:
            unread = b"Content-Length: %d\r\n\r\n" % self._need + unread
        self._buffer.clear()
        self._need = -1
        return unread

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
        """Parse one header block into `_need`, or return the error."""
        buffer = self._buffer
        if buffer.startswith((b"\r", b"\n")):
            del buffer[: len(buffer) - len(buffer.lstrip(b"\r\n"))]
        blank = _BLANK.search(buffer)
        if blank is None:
            if len(buffer) <= MAX_HEADER:
                return None
            match = _LENGTH.search(buffer, 1)
            del buffer[: match.start() if match else len(buffer) - 32]
            return BadFrame("Bytes that are no message: a frame begins with `Content-Length: <bytes>`.")
        block = bytes(buffer[: blank.end()])
        # The last Content-Length before the blank line counts: earlier ones belong to truncated messages.
        lengths = list(_LENGTH.finditer(block))
        del buffer[: blank.end()]
        if not lengths:
            return BadFrame("A header without Content-Length.")
        value = lengths[-1][1]
        if not value.isdigit() or int(value[:20]) > MAX_BODY:
            excerpt = value[:40].decode("ascii", "replace")
            return BadFrame(f"Content-Length must be a number from 0 to {MAX_BODY}, not {excerpt!r}.")
        self._need = int(value)
        stray = block[: lengths[-1].start()]
        if any(line.strip() and not _FIELD.match(line) for line in stray.splitlines()):
            return BadFrame("Bytes between two messages were skipped.")
        return None
