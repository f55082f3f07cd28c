"""Files as they were before an edit, kept by content under the home folder; restoring them."""

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
    review_of,
    unusable_checkpoint,
)
from daiku.workspace.diskio import make_folders, read_bytes, remove_file, replace_file
from daiku.workspace.encodings import decode, encode
from daiku.workspace.paths import locate, root_of

if TYPE_CHECKING:
    from daiku.edits.rules.changes.review import Blob, Content, FileReview


async def change_back(workspace: Workspace, path: str, before: bytes | None) -> FileChange | bool:
    """Return the change that restores `path`; True if it must be written as bytes, False if nothing differs."""
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


def put_bytes(workspace: Workspace, path: str, data: bytes | None) -> None:
    """Write `path` as it was, or remove it where `data` is None. Raises OSError, DaikuError."""
    roots, real = workspace.roots, workspace.locate(path)
    if data is None:
        remove_file(roots, real, path)
        return
    make_folders(roots, real.parent, path)
    replace_file(roots, real, data, path)


def compare_files(
    files: Sequence[KeptFile], current: Sequence[Content], content_of: Callable[[str | None], Content]
) -> tuple[Patch, Patch] | None:
    """Return the changes of an edit that the `current` contents show, and those that they do not; None if one shows neither."""
    applied: list[FileChange] = []
    missing: list[FileChange] = []
    for kept, now in zip(files, current, strict=True):
        old, new = content_of(kept.content), content_of(kept.after)
        if not kept.known or now not in (old, new):
            return None
        kind = "create" if old is None else "delete" if new is None else "edit"
        texts = {name: content for name, content in (("old", old), ("new", new)) if isinstance(content, str)}
        (applied if now == new else missing).append(FileChange(path=kept.path, kind=kind, **texts))
    return Patch(files=tuple(applied)), Patch(files=tuple(missing))


QUOTA = 1_000_000_000
"""Bytes of kept contents; above it the oldest checkpoints go until 80 % are left."""
_LARGEST = 100_000_000
_TOGETHER = 16_000_000
"""Bytes of contents that are written in one go."""


class RestoreResult(NamedTuple):
    """What bringing files back did: the files, and the checkpoint that was taken before it."""

    files: tuple[FileStat, ...]
    redo: str


class CheckpointStore:
    """The `Checkpoints` port: one small JSON file a checkpoint, contents compressed by their hash.

    Every file is written whole under another name and then renamed, so that a process that dies
    leaves what was there before or what is there after.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        *,
        quota: int = QUOTA,
        open_sessions: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`open_sessions`: those whose checkpoints go last, because work in them is not over."""
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
        """Keep `paths` as they are now, unsaved text first. Raises ToolValidationError for a path outside,
        OSError where the disk is full."""
        async with self._lock:
            found = await self._keep_all(tuple(dict.fromkeys(paths)))
            made = await asyncio.to_thread(self._add, session, run, found, patch)
            await self._sweep()
            return made

    async def settle(self, checkpoint_id: str, patch: Patch) -> None:
        async with self._lock:
            checkpoint = self.get(checkpoint_id)
            if checkpoint is not None:
                made = checkpoint.model_copy(
                    update={"files": add_outcome(self._contents, checkpoint.files, patch)}
                )
                await asyncio.to_thread(self._records.write, made)

    async def compare(self, checkpoint_id: str) -> tuple[Patch, Patch] | None:
        checkpoint = self.get(checkpoint_id)
        if checkpoint is None:
            return None
        paths = (self.current_path(checkpoint, kept.path) for kept in checkpoint.files)
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
        """Store a checkpoint before a review decision: `files` before and after, and their review states
        (`stances`)."""
        async with self._lock:
            name_of = self._contents.name_of
            kept = tuple(
                KeptFile(path=path, content=name_of(before), after=name_of(after), known=True)
                for path, (before, after) in files.items()
            )
            stood = tuple(keep_review(self._contents, path, review) for path, review in stances.items())
            made = self._new(session, run, kept, kind="review", stances=stood)
            await asyncio.to_thread(self._records.write, made)
            await self._sweep()
            return made.id

    async def record_review_states(self, checkpoint_id: str, stances: Mapping[str, FileReview]) -> None:
        """Note how the review of files stands after they were brought back."""
        async with self._lock:
            checkpoint = self.get(checkpoint_id)
            if checkpoint is not None:
                stood = tuple(keep_review(self._contents, path, review) for path, review in stances.items())
                self._records.write(checkpoint.model_copy(update={"stances": stood}))

    def get(self, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint; None where it is not there (any more)."""
        return self._records.get(checkpoint_id)

    def has(self, checkpoint_id: str) -> bool:
        return self.get(checkpoint_id) is not None

    def require(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint. Raises UsageError (not_found)."""
        found = self.get(checkpoint_id)
        if found is None:
            raise unusable_checkpoint(
                "not_found", text("checkpoints.none_such", id=checkpoint_id), text("checkpoints.too_old")
            )
        return found

    async def put_back(self, path: str, content: Blob) -> None:
        """Write a stored binary file to `path`. Raises DaikuError."""
        data = await asyncio.to_thread(self._contents.load, content.name)
        await asyncio.to_thread(put_bytes, self._workspace, path, data)

    def content(self, name: str | None) -> Content:
        """The kept content of that name, as text where it is text. Raises UsageError: damaged or gone."""
        return self._contents.content(name)

    def review_of(self, stance: KeptReview) -> FileReview:
        """Return the review stored in a checkpoint. Raises UsageError if its content is gone."""
        return review_of(self._contents, stance)

    async def current_content(self, path: str) -> Content:
        """Return a file's current content, unsaved text first; binary content is stored and returned as a Blob."""
        from daiku.edits.rules.changes.review import Blob  # when used

        if not await self._workspace.exists(path):
            return None
        try:
            return (await self._workspace.read(path)).text
        except DaikuError:
            name = await self._keep(path)
            return None if name is None else Blob(name)

    def current_path(self, checkpoint: Checkpoint, path: str) -> str:
        """How `path` of a checkpoint is called now, also where folders were added to the workspace since.
        Raises UsageError where it is not in the workspace."""
        roots = tuple(Path(root) for root in checkpoint.roots)
        if roots == self._workspace.roots:
            return path
        real = locate(roots, path)
        if root_of(self._workspace.roots, real) is None:
            where = ", ".join(checkpoint.roots)
            raise unusable_checkpoint(
                "usage",
                text("checkpoints.elsewhere", id=checkpoint.id, folder=where),
                text("checkpoints.open_there"),
            )
        return self._workspace.relative(real)

    async def _keep_all(self, paths: Sequence[str]) -> list[KeptFile]:
        """Each path with its present content; written together, for a change of threads costs as much."""
        kept: list[KeptFile] = []
        waiting: list[tuple[str, bytes | None]] = []

        def store() -> list[KeptFile]:
            return [
                KeptFile(path=p, content=None if d is None else self._contents.store(d)) for p, d in waiting
            ]

        for path in paths:
            waiting.append((path, await self._data(path)))
            if sum(len(data or b"") for _, data in waiting) > _TOGETHER:
                kept += await asyncio.to_thread(store)
                waiting.clear()
        return [*kept, *await asyncio.to_thread(store)]

    async def _keep(self, path: str) -> str | None:
        data = await self._data(path)
        return None if data is None else await asyncio.to_thread(self._contents.store, data)

    async def _data(self, path: str) -> bytes | None:
        real = self._workspace.locate(path)
        if not await self._workspace.exists(path):
            return None
        try:
            found = await self._workspace.read(path)
            return encode(found.text, found.encoding, bom=found.bom)
        except (DaikuError, UnicodeEncodeError):  # binary, or too large to be read as text
            return await asyncio.to_thread(read_bytes, self._workspace.roots, real, path, _LARGEST)

    def _add(self, session: str, run: str, found: Sequence[KeptFile], patch: Patch | None) -> str:
        made = self._new(
            session, run, tuple(found) if patch is None else add_outcome(self._contents, found, patch)
        )
        self._records.write(made)
        return made.id

    def _new(
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
            opened = self._open_sessions()  # not in a thread: it asks the journal
            await asyncio.to_thread(self._sweeping, opened)

    def list(self, session: str) -> tuple[Checkpoint, ...]:
        """The session's checkpoints, oldest first; unreadable ones are left out."""
        return self._records.of(session)

    def last_edits(self, session: str) -> str:
        """The checkpoint to go back to so that the last run with edits that stand is undone; once more,
        and it is the run before it. Raises UsageError where nothing is left to undo."""
        standing = [c for c in self.list(session) if not c.restored and c.kind == "edit"]
        if not standing:
            raise unusable_checkpoint(
                "not_found", text("checkpoints.nothing_to_undo"), text("checkpoints.on_their_machine")
            )
        return next(c.id for c in standing if c.run == standing[-1].run)

    async def undo(self, session: str) -> tuple[FileStat, ...]:
        """Bring back all that the last run with edits changed. Raises UsageError where there is nothing."""
        return await self.restore(self.last_edits(session))

    async def restore(self, checkpoint_id: str) -> tuple[FileStat, ...]:
        return (await self.bring_back(checkpoint_id)).files

    def forget(self, session: str) -> None:
        """Let go of a session's checkpoints, and of what no other session's hold."""
        self._sweeping.forget(session)

    def copy(self, session: str, ids: Sequence[str], restored: Collection[str]) -> dict[str, str]:
        """Copy checkpoints to another session, in this order, and return the new ids by the old ones."""
        return self._records.copy(session, ids, restored)

    async def bring_back(self, checkpoint_id: str, into: str | None = None) -> RestoreResult:
        """Bring back what this checkpoint and the session's later ones kept, each file as the earliest of
        them has it: whole or not at all for texts. A checkpoint of its own is taken first, so that this can
        be undone in its turn; it belongs to the session `into`. Raises UsageError where that cannot be."""
        async with self._lock:
            first, wanted = await asyncio.to_thread(self._since, checkpoint_id)
            before = [KeptFile(path=path, content=await self._keep(path)) for path in wanted]
            changes: list[FileChange] = []
            in_bytes: dict[str, bytes | None] = {}
            for path, content in wanted.items():
                data = await asyncio.to_thread(self._contents.load, content) if content else None
                change = await change_back(self._workspace, path, data)
                if isinstance(change, FileChange):
                    changes.append(change)
                elif change:
                    in_bytes[path] = data
            redo = self._begin_return(first, before, wanted, into or first.session)
            stats = (
                await self._workspace.apply(Patch(files=tuple(changes)), text("edits.restore"), exact=True)
                if changes
                else ()
            )
            for path, data in in_bytes.items():
                await asyncio.to_thread(put_bytes, self._workspace, path, data)
            self._mark(first, redo)
            kinds: list[FileStat] = [
                FileStat(path=path, kind="edit" if data is not None else "delete")
                for path, data in in_bytes.items()
            ]
            return RestoreResult((*stats, *kinds), redo.id)

    def _begin_return(
        self, first: Checkpoint, before: Sequence[KeptFile], wanted: Mapping[str, str | None], session: str
    ) -> Checkpoint:
        later = [c for c in self.list(first.session) if c.number >= first.number]
        kept = tuple(k.model_copy(update={"after": wanted[k.path], "known": True}) for k in before)
        undid = tuple(c.id for c in later if c.kind == "edit" and not c.restored)
        redo = self._new(session, first.run, kept, kind="restore", undid=undid)
        self._records.write(redo)
        return redo

    def _mark(self, first: Checkpoint, redo: Checkpoint) -> None:
        """The edits since `first` no longer stand; those that a return since then had undone do again where
        that is what was undone now."""
        again = first.undid if first.kind == "restore" else ()
        for ids, restored in ((redo.undid, True), (again, False)):
            for name in ids:
                found = self.get(name)
                if found is not None and found.restored != restored:
                    self._records.write(found.model_copy(update={"restored": restored}))

    def _since(self, checkpoint_id: str) -> tuple[Checkpoint, dict[str, str | None]]:
        first = self.require(checkpoint_id)
        wanted: dict[str, str | None] = {}
        for checkpoint in self.list(first.session):
            if checkpoint.number >= first.number:
                for kept in checkpoint.files:
                    wanted.setdefault(self.current_path(checkpoint, kept.path), kept.content)
        return first, wanted
