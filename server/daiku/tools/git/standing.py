"""The state of a project: its last commit, and what was changed since on the disk and in the editor; only read."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from daiku.core.ports import Editor, Workspace
from daiku.core.protected.paths import holds_secrets
from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError
from daiku.domain.trials import ChangedFile, NotKept, ProjectStart
from daiku.tools.git.git import Repository, repository
from daiku.tools.git.ownrun import COMMIT
from daiku.workspace.encodings import encode

MOST_FILES = 400
LARGEST = 2_000_000
"""Bytes of all changed files together; with more it is not kept how the project stands."""
STATUS = (
    *(
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--no-ahead-behind",
    ),
    "--ignore-submodules=dirty",
)
_BUFFERS = 200
"""Open files of the editor that are compared with the disk."""


@dataclass(eq=False, slots=True)
class _Reading:
    """What is read of the changed files, until there is a reason not to keep it."""

    top: Path
    workspace: Workspace
    redact: Callable[[str], str]
    why: NotKept | None = None
    size: int = 0
    files: list[ChangedFile] = field(default_factory=list[ChangedFile])

    def read(self, names: Iterable[str], buffers: Mapping[str, bytes]) -> None:
        for name in names:
            if self.why is None:
                self.why = self._read(name, buffers.get(name))

    def _read(self, name: str, buffer: bytes | None) -> NotKept | None:
        place = self.top / name
        if len(self.files) >= MOST_FILES:
            return "too_large"
        if not name.isprintable() or "\ufffd" in name:
            return "unreadable"
        if holds_secrets(name) or self.workspace.hidden(place):
            return "secret"
        try:
            found = _file(place, name, buffer)
        except FileNotFoundError:
            found = ChangedFile(path=name, kind="gone")
        except (OSError, ValueError):
            return "unreadable"
        self.size += len(found.content)
        if self.size > LARGEST * 4 // 3:
            return "too_large"
        text = base64.b64decode(found.content).decode("utf-8", "replace")
        plain = text.replace("\0", "")  # what is plain in UTF-16 and UTF-32 has these between its letters
        if any(self.redact(each) != each for each in (name, text, plain)):
            return "secret"
        self.files.append(found)
        return None


async def project_start(
    roots: tuple[Path, ...], workspace: Workspace, editor: Editor | None, redact: Callable[[str], str]
) -> ProjectStart:
    """How the project stands now, or why that is not to be known later. Nothing is written, no program is run that the
    repository names, and nothing is kept that `redact` would black out."""
    root = str(roots[0]) if roots else ""
    if len(roots) != 1:
        return ProjectStart(root=root, why="several_folders" if roots else "no_repository")
    found = await repository(roots[0], roots)
    if isinstance(found, str):
        return ProjectStart(root=root, why="no_repository")
    code, top = await found.run(["rev-parse", "--show-toplevel"])
    if code != 0:
        return ProjectStart(root=root, why="unreadable")
    return await _of(found, Path(top.strip("\n")), workspace, editor, redact)


async def _of(
    found: Repository, top: Path, workspace: Workspace, editor: Editor | None, redact: Callable[[str], str]
) -> ProjectStart:
    root, inside = str(found.root), found.root.resolve().relative_to(top).as_posix()
    whole = Repository(found.git, top, found.roots, found.off, found.of_items)
    code, listed = await whole.names(list(STATUS))
    if code != 0:
        return ProjectStart(root=root, why="unreadable")
    commit, names, why = _listed(listed)
    if why is None and await asyncio.to_thread(os.path.lexists, top / ".gitmodules"):
        why = "submodules"
    if why is not None:
        return ProjectStart(root=root, why=why)
    buffers = await _buffers(top, workspace, editor)
    reading = _Reading(top, workspace, redact)
    await asyncio.to_thread(reading.read, sorted({*names, *buffers}), buffers)
    if reading.why is not None:
        return ProjectStart(root=root, why=reading.why)
    return ProjectStart(root=root, commit=commit, inside=inside, changed=tuple(reading.files))


def _listed(listed: str) -> tuple[str, list[str], NotKept | None]:
    """The commit and the changed paths that git's list of the status names."""
    commit, names = "", list[str]()
    for entry in listed.split("\0"):
        kind, _, rest = entry.partition(" ")
        match kind:
            case "#":
                commit = rest.removeprefix("branch.oid ") if rest.startswith("branch.oid ") else commit
            case "1" | "u":
                parts = rest.split(" ", 7 if kind == "1" else 9)
                if parts[1].startswith("S"):
                    return "", [], "submodules"
                names.append(parts[-1])
            case "?" if rest.endswith("/"):  # a repository within the repository
                return "", [], "submodules"
            case "?":
                names.append(rest)
            case _:
                pass
    if not COMMIT.fullmatch(commit):
        return "", [], "no_commit"
    return commit, names, "too_large" if len(names) > MOST_FILES else None


async def _buffers(top: Path, workspace: Workspace, editor: Editor | None) -> dict[str, bytes]:
    """The bytes that unsaved texts of the editor would have on the disk, by their path from the repository's top."""
    found: dict[str, bytes] = {}
    for path in editor.open_files()[:_BUFFERS] if editor is not None else ():
        with suppress(DaikuError, OSError, ValueError):
            place = workspace.locate(path)
            text = await workspace.read(path)
            data = encode(text.text, text.encoding, bom=text.bom)
            if text.version is not None and data != await asyncio.to_thread(_bytes_of, place):
                found[place.relative_to(top).as_posix()] = data
    return found


def _bytes_of(place: Path) -> bytes | None:
    return place.read_bytes() if place.is_file() and place.stat().st_size <= LARGEST else None


def _file(place: Path, name: str, buffer: bytes | None) -> ChangedFile:
    """Raises OSError, ValueError: it is neither file nor link."""
    mode = os.lstat(place).st_mode if buffer is None or place.exists() else stat.S_IFREG
    if stat.S_ISLNK(mode):
        return ChangedFile(path=name, kind="link", content=_base64(os.fsencode(place.readlink())))
    if not stat.S_ISREG(mode):
        raise ValueError
    data = buffer if buffer is not None else _beginning(place)
    return ChangedFile(path=name, executable=bool(mode & 0o100), content=_base64(data))


def _beginning(place: Path) -> bytes:
    with place.open("rb") as opened:
        return opened.read(LARGEST + 1)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
