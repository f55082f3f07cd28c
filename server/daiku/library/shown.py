"""Base of workspaces whose client may show unsaved text: paths are the disk's, and stale edits are rejected."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.errors import DaikuError, Failure, StaleVersionError
from daiku.run.rules.outside import TextFile, Workspace
from daiku.texts.text import Text, text


class ShownWorkspace:
    """The part of ports.Workspace that does not depend on the client. `disk` is replaceable."""

    def __init__(self, disk: Workspace) -> None:
        self.disk = disk

    @property
    def roots(self) -> tuple[Path, ...]:
        return self.disk.roots

    def locate(self, path: str) -> Path:
        return self.disk.locate(path)

    def relative(self, path: Path) -> str:
        return self.disk.relative(path)

    def hidden(self, path: Path) -> bool:
        return self.disk.hidden(path)

    def closed(self, path: Path) -> bool:
        return self.disk.closed(path)

    def ignored(self, path: Path) -> bool:
        return self.disk.ignored(path)

    async def on_disk(self, path: str) -> str | None:
        """Return the file's text on disk, or None if it cannot be read."""
        try:
            return (await self.disk.read(path)).text
        except DaikuError:
            return None


def is_plain(file: TextFile) -> bool:
    """Return True if the file is UTF-8 without a byte order mark."""
    return file.encoding.lower() in ("utf-8", "ascii") and not file.bom


def stale_error(path: str, why: Text) -> StaleVersionError:
    """Return the error for an edit of a text that has changed, or that the client rejected."""
    return StaleVersionError(
        Failure(
            kind="stale",
            message=text("editor.not_changed", path=path, why=why),
            hint=text("editor.read_again"),
            retryable=True,
        )
    )
