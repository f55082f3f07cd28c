"""Checkpoints: file contents from before an edit, stored under the home folder, and their restoration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.run.rules.outside import Workspace
from daiku.texts.text import text
from daiku.workspace.contents import (
    Checkpoint,
    CheckpointKind,
    Contents,
    KeptFile,
    KeptReview,
    Records,
    Sweeper,
    add_outcome,
    keep_review,
    load_review,
    unusable_checkpoint,
)
from daiku.workspace.diskio import make_folders, read_bytes, remove_file, replace_file
from daiku.workspace.encodings import decode, encode
from daiku.workspace.paths import find_root, locate

if TYPE_CHECKING:
    from daiku.edits.rules.changes.review import Blob, Content, FileReview


async def build_restoring_change(workspace: Workspace, path: str, before: bytes | None) -> FileChange | bool:
    """Return the change that restores `path`, True if bytes must be written, or False if nothing differs."""
    text = decode(before) if before is not None else None
    exists = await workspace.exists(path)
    if before is not None and text is None:
        return True
    try:
        now = (await workspace.read(path)).text if exists else None
    except DaikuError:
        return True
    if now is None and text is None:
        return False
    if text is None:
        return FileChange(path=path, kind="delete", old=now)
    if now is None:
        plain = text.encoding == "utf-8" and not text.bom
        return FileChange(path=path, kind="create", new=text.text) if plain else True
    return FileChange(path=path, kind="edit", old=now, new=text.text) if now != text.text else False


def write_bytes(workspace: Workspace, path: str, data: bytes | None) -> None:
    """Write `data` to `path`, or remove the file if `data` is None. Raises OSError, DaikuError."""
    roots, real = workspace.roots, workspace.locate(path)
    if data is None:
        remove_file(roots, real, path)
        return
    make_folders(roots, real.parent, path)
    replace_file(roots, real, data, path)


def compare_files(
    files: Sequence[KeptFile], current: Sequence[Content], content_of: Callable[[str | None], Content]
) -> tuple[Patch, Patch] | None:
    """Split changes into those applied in `current` and those missing; None if a file matches neither."""
    applied: list[FileChange] = []
    missing: list[FileChange] = []
    for file, now in zip(files, current, strict=True):
        old, new = content_of(file.content), content_of(file.after)
        if not file.known or now not in (old, new):
            return None
        kind = "create" if old is None else "delete" if new is None else "edit"
        texts = {name: content for name, content in (("old", old), ("new", new)) if isinstance(content, str)}
        (applied if now == new else missing).append(FileChange(path=file.path, kind=kind, **texts))
    return Patch(files=tuple(applied)), Patch(files=tuple(missing))


QUOTA = 1_000_000_000
"""Bytes of stored contents. Above it, the oldest checkpoints are deleted until 80 % are left."""
_MAX_FILE_BYTES = 100_000_000
_BATCH_BYTES = 16_000_000
"""Bytes of contents per batch of writes."""


class RestoreResult(NamedTuple):
    """The outcome of a restore: the changed files, and the checkpoint that was taken before it."""

    files: tuple[FileStat, ...]
    redo: str


class CheckpointStore:
    """The `Checkpoints` port: a small JSON file per checkpoint, compressed contents named by their hash.

    Files are written under a temporary name and then renamed, so a crash never leaves a partial file.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        *,
        quota: int = QUOTA,
        open_sessions: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Open the store. Checkpoints of `open_sessions` (unfinished work) are deleted last."""
        self._contents = Contents(folder / "contents")
        self._records = Records(folder / "records")
        self._workspace = workspace
        self._sweeping = Sweeper(self._contents, self._records, quota)
        self._open_sessions = open_sessions
        self._lock = asyncio.Lock()
        self._changing = asyncio.Lock()

    @property
    def change_lock(self) -> asyncio.Lock:
        return self._changing

    def swept(self) -> int:
        return self._sweeping.pop_deleted_count()

    async def take(self, session: str, run: str, paths: Sequence[str], patch: Patch | None = None) -> str:
        """Store the content of `paths`, unsaved text first; return the checkpoint id. Raises DaikuError, OSError."""
        async with self._lock:
            files = await self._keep_all(tuple(dict.fromkeys(paths)))
            checkpoint_id = await asyncio.to_thread(self._add_checkpoint, session, run, files, patch)
            await self._sweep()
            return checkpoint_id

    async def settle(self, checkpoint_id: str, patch: Patch) -> None:
        async with self._lock:
            checkpoint = self.get(checkpoint_id)
            if checkpoint is not None:
                settled = checkpoint.model_copy(
                    update={"files": add_outcome(self._contents, checkpoint.files, patch)}
                )
                await asyncio.to_thread(self._records.write, settled)

    async def compare(self, checkpoint_id: str) -> tuple[Patch, Patch] | None:
        checkpoint = self.get(checkpoint_id)
        if checkpoint is None:
            return None
        paths = (self.current_path(checkpoint, file.path) for file in checkpoint.files)
        return compare_files(
            checkpoint.files, [await self.current_content(path) for path in paths], self.content
        )

    async def keep(
        self,
        session: str,
        run: str,
        files: Mapping[str, tuple[Content, Content]],
        stances: Mapping[str, FileReview],
    ) -> str:
        """Store a checkpoint before a review decision: contents before and after, and review states by path."""
        async with self._lock:
            name_of = self._contents.name_of
            stored = tuple(
                KeptFile(path=path, content=name_of(before), after=name_of(after), known=True)
                for path, (before, after) in files.items()
            )
            reviews = tuple(keep_review(self._contents, path, review) for path, review in stances.items())
            checkpoint = self._build(session, run, stored, kind="review", stances=reviews)
            await asyncio.to_thread(self._records.write, checkpoint)
            await self._sweep()
            return checkpoint.id

    async def record_review_states(self, checkpoint_id: str, stances: Mapping[str, FileReview]) -> None:
        """Record the review states of files that were restored."""
        async with self._lock:
            checkpoint = self.get(checkpoint_id)
            if checkpoint is not None:
                reviews = tuple(keep_review(self._contents, path, review) for path, review in stances.items())
                self._records.write(checkpoint.model_copy(update={"stances": reviews}))

    def get(self, checkpoint_id: str) -> Checkpoint | None:
        """Return the checkpoint; None if it does not exist or was deleted."""
        return self._records.get(checkpoint_id)

    def has(self, checkpoint_id: str) -> bool:
        return self.get(checkpoint_id) is not None

    def require(self, checkpoint_id: str) -> Checkpoint:
        """Return the checkpoint. Raises UsageError (not_found)."""
        checkpoint = self.get(checkpoint_id)
        if checkpoint is None:
            raise unusable_checkpoint(
                "not_found", text("checkpoints.none_such", id=checkpoint_id), text("checkpoints.too_old")
            )
        return checkpoint

    async def put_back(self, path: str, content: Blob) -> None:
        """Write a stored binary file to `path`. Raises DaikuError."""
        data = await asyncio.to_thread(self._contents.load, content.name)
        await asyncio.to_thread(write_bytes, self._workspace, path, data)

    def content(self, name: str | None) -> Content:
        """Return the stored content, as text if it is text. Raises UsageError if it is damaged or gone."""
        return self._contents.content(name)

    def load_review(self, stance: KeptReview) -> FileReview:
        """Return the review stored in a checkpoint. Raises UsageError if its content is gone."""
        return load_review(self._contents, stance)

    async def current_content(self, path: str) -> Content:
        """Return a file's content, unsaved text first; binary content is stored and returned as a Blob."""
        from daiku.edits.rules.changes.review import Blob  # when used

        if not await self._workspace.exists(path):
            return None
        try:
            return (await self._workspace.read(path)).text
        except DaikuError:
            name = await self._keep(path)
            return None if name is None else Blob(name)

    def current_path(self, checkpoint: Checkpoint, path: str) -> str:
        """Return the current name of a checkpoint's `path`, also after workspace folders were added.

        Raises UsageError if the file is not in the workspace.
        """
        roots = tuple(Path(root) for root in checkpoint.roots)
        if roots == self._workspace.roots:
            return path
        real = locate(roots, path)
        if find_root(self._workspace.roots, real) is None:
            where = ", ".join(checkpoint.roots)
            raise unusable_checkpoint(
                "usage",
                text("checkpoints.elsewhere", id=checkpoint.id, folder=where),
                text("checkpoints.open_there"),
            )
        return self._workspace.relative(real)

    async def _keep_all(self, paths: Sequence[str]) -> list[KeptFile]:
        """Store the current contents of `paths` in batches, to save switches between threads."""
        stored: list[KeptFile] = []
        batch: list[tuple[str, bytes | None]] = []

        def store() -> list[KeptFile]:
            return [
                KeptFile(path=p, content=None if d is None else self._contents.store(d)) for p, d in batch
            ]

        for path in paths:
            batch.append((path, await self._read_data(path)))
            if sum(len(data or b"") for _, data in batch) > _BATCH_BYTES:
                stored += await asyncio.to_thread(store)
                batch.clear()
        return [*stored, *await asyncio.to_thread(store)]

    async def _keep(self, path: str) -> str | None:
        data = await self._read_data(path)
        return None if data is None else await asyncio.to_thread(self._contents.store, data)

    async def _read_data(self, path: str) -> bytes | None:
        real = self._workspace.locate(path)
        if not await self._workspace.exists(path):
            return None
        try:
            file = await self._workspace.read(path)
            return encode(file.text, file.encoding, bom=file.bom)
        except (DaikuError, UnicodeEncodeError):  # binary, or too large to be read as text
            return await asyncio.to_thread(read_bytes, self._workspace.roots, real, path, _MAX_FILE_BYTES)

    def _add_checkpoint(self, session: str, run: str, files: Sequence[KeptFile], patch: Patch | None) -> str:
        checkpoint = self._build(
            session, run, tuple(files) if patch is None else add_outcome(self._contents, files, patch)
        )
        self._records.write(checkpoint)
        return checkpoint.id

    def _build(
        self,
        session: str,
        run: str,
        files: tuple[KeptFile, ...],
        kind: CheckpointKind = "edit",
        stances: tuple[KeptReview, ...] = (),
        undid: tuple[str, ...] = (),
    ) -> Checkpoint:
        return Checkpoint(
            id=long_id("checkpoint"),
            session=session,
            run=run,
            number=self._records.next_number(session),
            roots=tuple(str(root) for root in self._workspace.roots),
            files=files,
            kind=kind,
            stances=stances,
            undid=undid,
        )

    async def _sweep(self) -> None:
        if await asyncio.to_thread(self._sweeping.due):
            opened = self._open_sessions()  # reads the journal, so not in a thread
            await asyncio.to_thread(self._sweeping, opened)

    def list(self, session: str) -> tuple[Checkpoint, ...]:
        """Return the session's checkpoints, oldest first, without unreadable ones."""
        return self._records.list_for(session)

    def last_edits(self, session: str) -> str:
        """Return the id of the checkpoint that undoes the last run with edits in effect.

        After that is restored, the next call returns that of the run before. Raises UsageError if nothing can
        be undone.
        """
        edits = [c for c in self.list(session) if not c.restored and c.kind == "edit"]
        if not edits:
            raise unusable_checkpoint(
                "not_found", text("checkpoints.nothing_to_undo"), text("checkpoints.on_their_machine")
            )
        return next(c.id for c in edits if c.run == edits[-1].run)

    async def undo(self, session: str) -> tuple[FileStat, ...]:
        """Undo all edits of the last run that has any. Raises UsageError if there is none."""
        return await self.restore(self.last_edits(session))

    async def restore(self, checkpoint_id: str) -> tuple[FileStat, ...]:
        return (await self.bring_back(checkpoint_id)).files

    def forget(self, session: str) -> None:
        """Delete a session's checkpoints, and contents that no other session uses."""
        self._sweeping.forget(session)

    def copy(self, session: str, ids: Sequence[str], restored: Collection[str]) -> dict[str, str]:
        """Copy checkpoints to another session, in this order. Return the new ids by the old ones."""
        return self._records.copy(session, ids, restored)

    async def bring_back(self, checkpoint_id: str, into: str | None = None) -> RestoreResult:
        """Restore the files of this checkpoint and of the session's later ones.

        Each file gets the earliest content stored. Texts change all or nothing. A new checkpoint in the
        session `into` is taken first, so the restore can be undone. Raises UsageError if it is not possible.
        """
        async with self._lock:
            first, contents = await asyncio.to_thread(self._contents_since, checkpoint_id)
            before = [KeptFile(path=path, content=await self._keep(path)) for path in contents]
            changes: list[FileChange] = []
            in_bytes: dict[str, bytes | None] = {}
            for path, content in contents.items():
                data = await asyncio.to_thread(self._contents.load, content) if content else None
                change = await build_restoring_change(self._workspace, path, data)
                if isinstance(change, FileChange):
                    changes.append(change)
                elif change:
                    in_bytes[path] = data
            redo = self._write_redo_checkpoint(first, before, contents, into or first.session)
            stats = (
                await self._workspace.apply(Patch(files=tuple(changes)), text("edits.restore"), exact=True)
                if changes
                else ()
            )
            for path, data in in_bytes.items():
                await asyncio.to_thread(write_bytes, self._workspace, path, data)
            self._mark_undone(first, redo)
            kinds: list[FileStat] = [
                FileStat(path=path, kind="edit" if data is not None else "delete")
                for path, data in in_bytes.items()
            ]
            return RestoreResult((*stats, *kinds), redo.id)

    def _write_redo_checkpoint(
        self, first: Checkpoint, before: Sequence[KeptFile], contents: Mapping[str, str | None], session: str
    ) -> Checkpoint:
        later = [c for c in self.list(first.session) if c.number >= first.number]
        files = tuple(k.model_copy(update={"after": contents[k.path], "known": True}) for k in before)
        undid = tuple(c.id for c in later if c.kind == "edit" and not c.restored)
        redo = self._build(session, first.run, files, kind="restore", undid=undid)
        self._records.write(redo)
        return redo

    def _mark_undone(self, first: Checkpoint, redo: Checkpoint) -> None:
        """Mark the edits since `first` as undone; if it was an undo, mark its edits as in effect again."""
        redone = first.undid if first.kind == "restore" else ()
        for ids, restored in ((redo.undid, True), (redone, False)):
            for name in ids:
                checkpoint = self.get(name)
                if checkpoint is not None and checkpoint.restored != restored:
                    self._records.write(checkpoint.model_copy(update={"restored": restored}))

    def _contents_since(self, checkpoint_id: str) -> tuple[Checkpoint, dict[str, str | None]]:
        first = self.require(checkpoint_id)
        contents: dict[str, str | None] = {}
        for checkpoint in self.list(first.session):
            if checkpoint.number >= first.number:
                for file in checkpoint.files:
                    contents.setdefault(self.current_path(checkpoint, file.path), file.content)
        return first, contents
