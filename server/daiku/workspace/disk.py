"""The workspace on disk: reads text files inside the roots and applies patches all or nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, Failure, StaleVersionError
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.run.rules.outside import TextFile, Workspace
from daiku.texts.text import Text, text
from daiku.workspace import paths
from daiku.workspace.diskio import make_folders, move_file, read_bytes, remove_file, replace_file
from daiku.workspace.encodings import decode, encode
from daiku.workspace.paths import refuse

if TYPE_CHECKING:
    from daiku.workspace.ignores import Ignores


class DiskWorkspace:
    """The `Workspace` port without an editor. Roots are resolved once, paths at every use."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = tuple(Path(os.path.realpath(root)) for root in roots)
        paths.new_workspaces.update(self._roots)
        self._ignore_files: dict[Path, Ignores] = {}
        self._lock = asyncio.Lock()

    @property
    def roots(self) -> tuple[Path, ...]:
        return self._roots

    def locate(self, path: str) -> Path:
        return paths.locate(self._roots, path)

    def relative(self, path: Path) -> str:
        return paths.relative(self._roots, path)

    def hidden(self, path: Path) -> bool:
        root = paths.find_root(self._roots, path)
        return root is not None and self._load_ignores(root).hidden(path, self.relative(path))

    def closed(self, path: Path) -> bool:
        root = paths.find_root(self._roots, path)
        return root is not None and path != root and self._load_ignores(root).closed_by_file(path)

    def ignored(self, path: Path) -> bool:
        root = paths.find_root(self._roots, path)
        return root is not None and path != root and self._load_ignores(root).leaves_out(path)

    def _load_ignores(self, root: Path) -> Ignores:
        if root not in self._ignore_files:
            from daiku.workspace.ignores import Ignores  # when used

            self._ignore_files[root] = Ignores.of(root)
        return self._ignore_files[root]

    async def read(self, path: str) -> TextFile:
        return await asyncio.to_thread(self.read_now, path)

    async def exists(self, path: str) -> bool:
        return self.locate(path).exists()

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        # The label and `exact` are for editors.
        async with self._lock:
            return await asyncio.to_thread(self._apply, patch)

    def read_now(self, path: str) -> TextFile:
        """Read a text file synchronously, for use in threads."""
        real = self.locate(path)
        name = self.relative(real)
        decoded = decode(read_bytes(self._roots, real, name))
        if decoded is None:
            raise refuse(text("files.binary", path=name))
        return TextFile(name, decoded.text, decoded.encoding, decoded.bom)

    def _apply(self, patch: Patch) -> tuple[FileStat, ...]:
        from daiku.edits.rules.changes.diff import stat  # when used

        steps = [step for change in patch.files for step in self._plan_steps(change)]
        undo: list[Callable[[], object]] = []
        try:
            for step in steps:
                step.do(undo)
        except BaseException:
            for back in reversed(undo):
                with suppress(Exception):  # the first error is the one to report
                    back()
            raise
        return tuple(stat(change) for change in patch.files)

    def _plan_steps(self, change: FileChange) -> list[_Step]:
        """Return the disk changes for one file, after all checks on it."""
        real = self.locate(change.path)
        name = self.relative(real)
        if real in self._roots:
            raise refuse(text("files.is_workspace", path=name))
        current = self._read_unchanged(change, real, name)
        if change.kind == "delete" or (change.new is None and change.kind != "rename"):
            return [_Step(self._roots, "remove", real, name)]
        to = self.locate(change.to) if change.to else real
        steps: list[_Step] = []
        if to != real:
            if to.exists() and not to.samefile(real):
                raise refuse(text("files.cannot_become", path=name, other=self.relative(to)))
            steps.append(_Step(self._roots, "move", real, name, to=to))
        if change.new is not None and change.new != change.old:
            steps.append(
                _Step(
                    self._roots, "write", to, self.relative(to), data=_encode_like(change.new, current, name)
                )
            )
        return steps

    def _read_unchanged(self, change: FileChange, real: Path, name: str) -> TextFile | None:
        """Read the file and check that it is what the change was made against. Raises StaleVersionError."""
        if not os.path.lexists(real):
            if change.kind != "create" or change.old is not None:
                raise _build_stale_error(name, text("files.gone"))
            return None
        if change.kind == "create":
            raise _build_stale_error(name, text("files.there_already"))
        if change.old is None:  # a binary file, moved or deleted unread
            if not real.is_file():
                raise refuse(text("files.not_a_file", path=name))
            return None
        file = self.read_now(change.path)
        if file.text != change.old:
            raise _build_stale_error(name, text("files.changed_meanwhile"))
        return file


@dataclass(frozen=True, slots=True)
class _Step:
    """One change on disk. `do` adds its undo step to the list."""

    roots: tuple[Path, ...]
    verb: str
    real: Path
    name: str
    data: bytes = b""
    to: Path | None = None

    def do(self, undo: list[Callable[[], object]]) -> None:
        target = self.to or self.real
        if self.verb != "remove":
            undo += (folder.rmdir for folder in make_folders(self.roots, target.parent, self.name))
        match self.verb:
            case "move":
                move_file(self.roots, self.real, target, self.name)
                undo.append(lambda: move_file(self.roots, target, self.real, self.name))
            case "remove":
                before, mode = self.real.read_bytes(), self.real.stat().st_mode
                remove_file(self.roots, self.real, self.name)
                undo.append(lambda: self._bring_back(before, mode))
            case _:
                before = self.real.read_bytes() if self.real.exists() else None
                replace_file(self.roots, self.real, self.data, self.name)
                if before is None:
                    undo.append(lambda: remove_file(self.roots, self.real, self.name))
                else:
                    undo.append(lambda: replace_file(self.roots, self.real, before, self.name))

    def _bring_back(self, data: bytes, mode: int) -> None:
        replace_file(self.roots, self.real, data, self.name)
        self.real.chmod(mode & 0o7777)


def _encode_like(content: str, file: TextFile | None, name: str) -> bytes:
    encoding = file.encoding if file else "utf-8"
    try:
        return encode(content, encoding, bom=file.bom if file else False)
    except UnicodeEncodeError as error:
        wrong = content[error.start : error.end][:10]
        raise refuse(
            text("files.no_character", path=name, encoding=encoding, character=repr(wrong)),
            text("files.other_words"),
        ) from None


def _build_stale_error(name: str, why: Text) -> StaleVersionError:
    return StaleVersionError(
        Failure(
            kind="stale",
            message=text("files.stale", path=name, why=why),
            hint=text("files.read_again"),
            retryable=True,
        )
    )


def is_closed(workspace: Workspace, path: str) -> bool:
    """Return True if .daikuignore closes the file at `path`. A path outside the roots is not closed."""
    try:
        return workspace.closed(workspace.locate(path))
    except (DaikuError, OSError, ValueError):
        return False
