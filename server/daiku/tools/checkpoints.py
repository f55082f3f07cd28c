"""Files as they were before an edit, kept by content under the home folder; restoring them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from daiku.core.ports import Workspace
from daiku.domain.base import Frozen, long_id
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.patches import FileChange, FileStat, Patch
from daiku.tools.diskio import make_folders, read_bytes, remove_file, replace_file
from daiku.tools.encodings import decode, encode

QUOTA = 1_000_000_000
"""Bytes of kept contents; above it the oldest checkpoints go until 80 % are left."""
_LARGEST = 100_000_000


class Kept(Frozen):
    """One file as it was: `content` names the stored bytes, None where there was no file."""

    path: str
    content: str | None


class Checkpoint(Frozen):
    """What was kept before one edit. `number` rises by one within a session; `restored` says that it
    was brought back, so that the next undo goes further into the past."""

    id: str
    session: str
    run: str
    number: int
    roots: tuple[str, ...]
    files: tuple[Kept, ...]
    restored: bool = False


class CheckpointStore:
    """The `Checkpoints` port: one small JSON file a checkpoint, contents compressed by their hash.

    Every file is written whole under another name and then renamed, so that a process that dies
    leaves what was there before or what is there after.
    """

    def __init__(self, folder: Path, workspace: Workspace, *, quota: int = QUOTA) -> None:
        self._contents = folder / "contents"
        self._records = folder / "records"
        self._workspace = workspace
        self._quota = quota
        self._size: int | None = None
        self._lock = asyncio.Lock()

    async def take(self, session: str, run: str, paths: Sequence[str]) -> str:
        """Keep `paths` as they are now, unsaved text first. Raises ToolValidationError for a path outside,
        OSError where the disk is full."""
        async with self._lock:
            kept = [Kept(path=path, content=await self._keep(path)) for path in dict.fromkeys(paths)]
            return await asyncio.to_thread(self._record, session, run, tuple(kept))

    async def _keep(self, path: str) -> str | None:
        real = self._workspace.locate(path)
        if not await self._workspace.exists(path):
            return None
        try:
            found = await self._workspace.read(path)
            data = encode(found.text, found.encoding, bom=found.bom)
        except (DaikuError, UnicodeEncodeError):  # binary, or too large to be read as text
            data = await asyncio.to_thread(read_bytes, self._workspace.roots, real, path, _LARGEST)
        return await asyncio.to_thread(self._store, data)

    def _store(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        place = self._content(name)
        if not place.exists():
            packed = zlib.compress(data, 1)
            _write(place, packed)
            if self._size is not None:
                self._size += len(packed)
        return name

    def _content(self, name: str) -> Path:
        return self._contents / name[:2] / name[2:]

    def _record(self, session: str, run: str, files: tuple[Kept, ...]) -> str:
        folder = self._records / _safe(session)
        numbers = [int(path.name.partition("-")[0]) for path in _listed(folder)]
        checkpoint = Checkpoint(
            id=long_id("checkpoint"),
            session=session,
            run=run,
            number=max(numbers, default=0) + 1,
            roots=tuple(str(root) for root in self._workspace.roots),
            files=files,
        )
        _write(folder / f"{checkpoint.number:08}-{checkpoint.id}.json", checkpoint.model_dump_json().encode())
        self._stay_within_quota()
        return checkpoint.id

    def list(self, session: str) -> tuple[Checkpoint, ...]:
        """The session's checkpoints, oldest first; unreadable ones are left out."""
        found = (_read(path) for path in _listed(self._records / _safe(session)))
        return tuple(checkpoint for checkpoint in found if checkpoint is not None)

    async def undo(self, session: str) -> tuple[FileStat, ...]:
        """Bring back all that the last run with edits changed; again, and the run before it is undone.
        Raises UsageError where nothing is left to undo."""
        standing = [c for c in self.list(session) if not c.restored]
        if not standing:
            raise _unusable("not_found", "There is nothing to undo in this conversation.", "")
        return await self.restore(next(c.id for c in standing if c.run == standing[-1].run))

    async def restore(self, checkpoint_id: str) -> tuple[FileStat, ...]:
        """Bring back what this checkpoint and the session's later ones kept, each file as the earliest of
        them has it: whole or not at all for texts. Raises UsageError where that cannot be."""
        async with self._lock:
            wanted = await asyncio.to_thread(self._since, checkpoint_id)
            changes: list[FileChange] = []
            bytes_to_write: list[tuple[str, bytes | None]] = []
            for path, content in wanted.items():
                before = await asyncio.to_thread(self._load, content) if content else None
                change = await self._change(path, before)
                if isinstance(change, FileChange):
                    changes.append(change)
                elif change:
                    bytes_to_write.append((path, before))
            stats = await self._workspace.apply(Patch(files=tuple(changes)), "restore") if changes else ()
            for path, data in bytes_to_write:
                await asyncio.to_thread(self._put_bytes, path, data)
            self._mark_restored(checkpoint_id)
            return (*stats, *(FileStat(path=path, kind="edit") for path, _ in bytes_to_write))

    def _mark_restored(self, checkpoint_id: str) -> None:
        place = next(iter(self._records.glob(f"*/*-{_safe(checkpoint_id)}.json")), None)
        for path in _listed(place.parent) if place else ():
            checkpoint = _read(path) if place is not None and path.name >= place.name else None
            if checkpoint is not None and not checkpoint.restored:
                _write(path, checkpoint.model_copy(update={"restored": True}).model_dump_json().encode())

    def _since(self, checkpoint_id: str) -> dict[str, str | None]:
        place = next(iter(self._records.glob(f"*/*-{_safe(checkpoint_id)}.json")), None)
        first = _read(place) if place else None
        if first is None:
            raise _unusable(
                "not_found",
                f"There is no checkpoint {checkpoint_id}.",
                "It may be too old: the oldest go first.",
            )
        if first.roots != tuple(str(root) for root in self._workspace.roots):
            raise _unusable(
                "usage",
                f"Checkpoint {checkpoint_id} belongs to {', '.join(first.roots)}.",
                "Open that folder.",
            )
        wanted: dict[str, str | None] = {}
        for checkpoint in self.list(first.session):
            if checkpoint.number >= first.number:
                for kept in checkpoint.files:
                    wanted.setdefault(kept.path, kept.content)
        return wanted

    def _load(self, content: str) -> bytes:
        try:
            data = zlib.decompress(self._content(content).read_bytes())
        except (OSError, zlib.error):
            data = b""
        if hashlib.sha256(data).hexdigest() != content:
            raise _unusable("usage", "The checkpoint's contents are damaged or gone.", "Nothing was changed.")
        return data

    async def _change(self, path: str, before: bytes | None) -> FileChange | bool:
        """The change that brings `path` back; True where it must be done in bytes, False where nothing is."""
        text = decode(before) if before is not None else None
        exists = await self._workspace.exists(path)
        if before is not None and text is None:
            return True
        try:
            now = (await self._workspace.read(path)).text if exists else None
        except DaikuError:
            return True
        if now is None and text is None:
            return False
        if text is None:
            return FileChange(path=path, kind="delete", old=now)
        if now is None:
            return (
                FileChange(path=path, kind="create", new=text.text)
                if _plain(text.encoding, text.bom)
                else True
            )
        return FileChange(path=path, kind="edit", old=now, new=text.text) if now != text.text else False

    def _put_bytes(self, path: str, data: bytes | None) -> None:
        roots, real = self._workspace.roots, self._workspace.locate(path)
        if data is None:
            remove_file(roots, real, path)
            return
        make_folders(roots, real.parent, path)
        replace_file(roots, real, data, path)

    def _stay_within_quota(self) -> None:
        if self._size is None:
            self._size = sum(path.stat().st_size for path in self._contents.glob("*/*"))
        if self._size <= self._quota:
            return
        records = sorted(self._records.glob("*/*.json"), key=lambda path: path.stat().st_mtime_ns)
        kept = {path: _read(path) for path in records}
        while len(kept) > 1 and self._size > self._quota * 0.8:
            oldest = next(iter(kept))
            gone = _contents_of([kept.pop(oldest)]) - _contents_of(kept.values())
            oldest.unlink(missing_ok=True)
            for content in gone:
                with suppress(OSError):
                    self._size -= self._content(content).stat().st_size
                    self._content(content).unlink()


def _contents_of(checkpoints: Iterable[Checkpoint | None]) -> set[str]:
    return {kept.content for c in checkpoints if c for kept in c.files if kept.content}


def _plain(encoding: str, bom: bool) -> bool:  # the two halves of an encoding
    return encoding == "utf-8" and not bom


def _unusable(kind: str, message: str, hint: str) -> UsageError:
    return UsageError(Failure.model_validate({"kind": kind, "message": message, "hint": hint}))


def _safe(name: str) -> str:
    """A session's or checkpoint's id as a file name; ids of ours are unchanged."""
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-*.json"))


def _read(path: Path) -> Checkpoint | None:
    try:
        return Checkpoint.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError):
        return None


def _private_folder(folder: Path) -> None:
    """Make a folder with those above it for this user alone; `mkdir(parents=True)` leaves those open."""
    if not folder.is_dir():
        _private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, data: bytes) -> None:
    _private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)
    temporary.replace(path)
