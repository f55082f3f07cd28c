"""Open documents of the editor: unsaved text, versions, incremental changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

from daiku.dataclass import dataclass, field
from daiku.domain.runs import Position
from daiku.edits.rules.positions import Encoding, find_line_starts, to_offset
from daiku.fronts.lsp.initialize import to_path


@dataclass(slots=True)
class OpenDocument:
    """An open document. `uri` is spelled as the editor spells it, which responses must repeat."""

    uri: str
    path: Path | None
    version: int
    text: str
    expected: str | None = None
    """Text after an accepted edit of ours, until the editor reports a change itself."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _starts: list[int] | None = None

    @property
    def starts(self) -> list[int]:
        """Line starts of `text`."""
        if self._starts is None:
            self._starts = find_line_starts(self.text)
        return self._starts

    @property
    def displayed_text(self) -> str:
        """The text to read, including an accepted edit that the editor has not reported yet."""
        return self.text if self.expected is None else self.expected

    def replace(self, start: Position, end: Position, text: str, encoding: Encoding) -> None:
        """Apply one incremental change."""
        starts = self.starts
        start_offset = to_offset(self.text, starts, start, encoding)
        end_offset = max(start_offset, to_offset(self.text, starts, end, encoding))
        first = max(0, min(start.line, len(starts) - 1) - 1)
        # One more line on either side: a change may join \r and \n.
        last = min(len(starts), max(0, start.line, end.line) + 2)
        kept_end = starts[last] if last < len(starts) else len(self.text)
        new = self.text[:start_offset] + text + self.text[end_offset:]
        growth = len(new) - len(self.text)
        base = starts[first]
        middle = [base + i for i in find_line_starts(new[base : kept_end + growth])]
        tail = [i + growth for i in starts[last:]] if last < len(starts) else []
        if tail and middle[-1] == tail[0]:
            middle.pop()
        self.text = new
        self._starts = starts[:first] + middle + tail

    def set_text(self, text: str) -> None:
        """Replace the complete text."""
        self.text = text
        self._starts = None


class Documents:
    """All open documents, by the editor's URI and by path."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._by_uri: dict[str, OpenDocument] = {}
        self._by_path: dict[str, OpenDocument] = {}

    def open(self, uri: str, version: int, text: str) -> OpenDocument:
        """Add an opened (or reopened) document."""
        path = to_path(uri) if uri.startswith("file:") else None
        document = OpenDocument(uri, Path(path) if path else None, version, text)
        self._by_uri[uri] = document
        if path:
            self._by_path[_key(path)] = document
        return document

    def change(self, uri: str, version: int, changes: list[Any]) -> None:
        """Apply `contentChanges` (lsprotocol's types) in order; unknown documents are ignored."""
        document = self._by_uri.get(uri)
        if document is None:
            return
        for change in changes:
            place = getattr(change, "range", None)
            if place is None:
                document.set_text(change.text)
            else:
                start = Position(line=place.start.line, character=place.start.character)
                end = Position(line=place.end.line, character=place.end.character)
                document.replace(start, end, change.text, self.encoding)
        document.version = version
        document.expected = None
        document.changed.set()

    def close(self, uri: str) -> None:
        """Remove a closed document; its text is then the one on disk."""
        document = self._by_uri.pop(uri, None)
        if document is None:
            return
        document.changed.set()
        if document.path is not None and self._by_path.get(_key(str(document.path))) is document:
            del self._by_path[_key(str(document.path))]

    def at(self, path: Path) -> OpenDocument | None:
        """Return the open document of a file, which may be named through a symbolic link."""
        return self._by_path.get(_key(str(path)))

    def all(self) -> tuple[OpenDocument, ...]:
        """Return all open documents in the order of opening."""
        return tuple(self._by_uri.values())


def to_uri(path: Path) -> str:
    """Return a `file:` URI in the form of VS Code and Neovim."""
    text = path.as_posix()
    return "file://" + quote(text if text.startswith("/") else f"/{text}", safe="/~-._!$&'()*+,;=@")


def _key(path: str) -> str:
    return str(Path(path).resolve())
