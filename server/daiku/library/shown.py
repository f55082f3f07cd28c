"""What workspaces share whose files a client shows with text of its own: paths are the disk's, a stale edit is refused."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.errors import DaikuError, Failure, StaleVersionError
from daiku.run.rules.outside import TextFile, Workspace
from daiku.texts.text import Text, text


class ShownWorkspace:
    """The half of ports.Workspace that a client has no say in. `disk` is the workspace on disk; it may be replaced."""

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
        """The file's own text, whatever the client shows; None where it has none that can be read."""
        try:
            return (await self.disk.read(path)).text
        except DaikuError:
            return None


def is_plain(file: TextFile) -> bool:
    """True where a client reads and writes the file as we do: UTF-8 without a mark."""
    return file.encoding.lower() in ("utf-8", "ascii") and not file.bom


def stale(path: str, why: Text) -> StaleVersionError:
    """An edit that was made against another text than the client has now, or that it did not take."""
    return StaleVersionError(
        Failure(
            kind="stale",
            message=text("editor.not_changed", path=path, why=why),
            hint=text("editor.read_again"),
            retryable=True,
        )
    )
