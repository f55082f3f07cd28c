"""Storage of checkpoints: file contents by hash, one small record per checkpoint, oldest deleted first."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from daiku.domain.base import Frozen, long_id
from daiku.domain.errors import Failure, UsageError
from daiku.domain.work.patches import Patch
from daiku.texts.text import Text, text
from daiku.workspace.encodings import decode

if TYPE_CHECKING:
    from daiku.edits.rules.changes.review import Content, FileReview

MAX_AGE = 30 * 24 * 3600.0
"""Seconds after which a checkpoint is deleted, unless its session has unfinished work."""
DAILY = 24 * 3600.0
"""Seconds between two sweeps for expired checkpoints."""
LEFT = 0.8
"""Share of the quota (0 to 1) that is left after the oldest checkpoints are deleted."""

CheckpointKind = Literal["edit", "review", "restore"]


class KeptFile(Frozen):
    """The state of one file before an edit.

    `content` names the stored bytes, None if there was no file. If `known`, `after` names the content that
    the edit was to write, and `origin` is the name before a move.
    """

    path: str
    content: str | None
    after: str | None = None
    known: bool = False
    origin: str | None = None


class KeptReview(Frozen):
    """The review state of one file after a decision: both contents by name, and the spans between them."""

    path: str
    base: str | None = None
    now: str | None = None
    spans: tuple[tuple[int, int, int, int, str, bool], ...] = ()
    origin: str | None = None


class Checkpoint(Frozen):
    """The state of files before one edit.

    `number` rises by one within a session. `restored` is set when the checkpoint was restored, so that the
    next undo goes further back. `kind` is "review" before a review decision and "restore" before a restore,
    which lists in `undid` the checkpoints that it marked.
    """

    id: str
    session: str
    run: str
    number: int
    roots: tuple[str, ...]
    files: tuple[KeptFile, ...]
    restored: bool = False
    kind: CheckpointKind = "edit"
    stances: tuple[KeptReview, ...] = ()
    undid: tuple[str, ...] = ()


class Contents:
    """A store of compressed bytes, named by their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._size: int | None = None

    def store(self, data: bytes) -> str:
        """Store `data` and return its name. Raises OSError."""
        name = hashlib.sha256(data).hexdigest()
        place = self._place(name)
        if not place.exists():
            packed = zlib.compress(data, 1)
            _write(place, packed)
            if self._size is not None:
                self._size += len(packed)
        return name

    def load(self, name: str) -> bytes:
        """Return the stored bytes. Raises UsageError if they are damaged or gone."""
        try:
            data = zlib.decompress(self._place(name).read_bytes())
        except (OSError, zlib.error):
            data = b""
        if hashlib.sha256(data).hexdigest() != name:
            raise unusable_checkpoint(
                "usage", text("checkpoints.damaged"), text("checkpoints.nothing_changed")
            )
        return data

    def content(self, name: str | None) -> Content:
        """Return what is stored under `name`, as text if it is text. Raises UsageError if damaged or gone."""
        from daiku.edits.rules.changes.review import Blob  # when used

        if name is None:
            return None
        read = decode(self.load(name))
        return Blob(name) if read is None else read.text

    def name_of(self, content: Content) -> str | None:
        """Return the store's name for `content`, storing a text if needed; None for no content."""
        from daiku.edits.rules.changes.review import Blob  # when used

        match content:
            case None:
                return None
            case Blob(name):
                return name
            case str():
                return self.store(content.encode("utf-8", "surrogatepass"))

    @property
    def size(self) -> int:
        """Bytes on disk; counted once."""
        if self._size is None:
            self._size = sum(path.stat().st_size for path in self._folder.glob("*/*"))
        return self._size

    def drop(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                size = self._place(name).stat().st_size
                self._place(name).unlink()
                self._size = self.size - size

    def _place(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:]


class Records:
    """The checkpoint records of all sessions: one folder per session, one file per checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, Path] = {}

    def next_number(self, session: str) -> int:
        numbers = [int(path.name.partition("-")[0]) for path in _list_record_files(self.folder_of(session))]
        return max(numbers, default=0) + 1

    def write(self, checkpoint: Checkpoint) -> None:
        """Write the record, replacing one with the same id. Raises OSError."""
        place = self.folder_of(checkpoint.session) / f"{checkpoint.number:08}-{checkpoint.id}.json"
        _write(place, checkpoint.model_dump_json(exclude_defaults=True).encode())
        self._places[checkpoint.id] = place

    def copy(self, session: str, ids: Sequence[str], restored: Collection[str]) -> dict[str, str]:
        """Copy checkpoints to another session, marking those in `restored`.

        Return the new ids by the old ones.
        """
        names = {old: long_id("checkpoint") for old in ids}
        for old in ids:
            checkpoint = self.get(old)
            if checkpoint is not None:
                changes = {
                    "id": names[old],
                    "session": session,
                    "number": self.next_number(session),
                    "restored": old in restored,
                    "undid": tuple(names.get(old_id, old_id) for old_id in checkpoint.undid),
                }
                self.write(checkpoint.model_copy(update=changes))
        return names

    def get(self, checkpoint_id: str) -> Checkpoint | None:
        place = self._places.get(checkpoint_id)
        if place is None:
            place = next(iter(self._folder.glob(f"*/*-{_to_file_name(checkpoint_id)}.json")), None)
        if place is None:
            return None
        self._places[checkpoint_id] = place
        return _read(place)

    def list_for(self, session: str) -> tuple[Checkpoint, ...]:
        """Return a session's checkpoints, oldest first, without unreadable ones."""
        checkpoints = (_read(path) for path in _list_record_files(self.folder_of(session)))
        return tuple(checkpoint for checkpoint in checkpoints if checkpoint is not None)

    def all(self) -> dict[Path, Checkpoint | None]:
        """Return all checkpoints by file, oldest first; None for an unreadable one."""
        places = sorted(self._folder.glob("*/*.json"), key=lambda path: path.stat().st_mtime_ns)
        return {place: _read(place) for place in places}

    def folder_of(self, session: str) -> Path:
        return self._folder / _to_file_name(session)


class Sweeper:
    """Deletes the oldest checkpoints above the quota, and expired ones.

    Those of open sessions are deleted last, and never because of their age.
    """

    def __init__(self, contents: Contents, records: Records, quota: int) -> None:
        self._contents, self._records, self._quota = contents, records, quota
        self._swept_at = float("-inf")
        self._deleted_count = 0

    def due(self) -> bool:
        """Return True if the quota is exceeded or the last sweep was a day ago."""
        return self._contents.size > self._quota or time.monotonic() - self._swept_at > DAILY

    def __call__(self, opened: Collection[str]) -> None:
        """Delete checkpoints that are too old or too many. `opened`: sessions with unfinished work."""
        full = self._contents.size > self._quota
        self._swept_at = time.monotonic()
        records = self._records.all()
        newest = next(reversed(records), None)
        goes_last = {p: c for p, c in records.items() if c is not None and c.session in opened}
        for place in [*(p for p in records if p not in goes_last), *goes_last]:
            too_old = place not in goes_last and time.time() - place.stat().st_mtime > MAX_AGE
            full = full and self._contents.size > self._quota * LEFT
            if place != newest and (full or too_old):
                self._drop(place, records)

    def _drop(self, place: Path, records: dict[Path, Checkpoint | None]) -> None:
        unused = _list_contents([records.pop(place)]) - _list_contents(records.values())
        place.unlink(missing_ok=True)
        self._contents.drop(unused)
        self._deleted_count += 1

    def forget(self, session: str) -> None:
        """Delete all checkpoints of a session, and contents that no other session uses."""
        records = self._records.all()
        own_records = {
            place: records.pop(place)
            for place in tuple(records)
            if place.parent == self._records.folder_of(session)
        }
        for place in own_records:
            place.unlink(missing_ok=True)
        self._contents.drop(_list_contents(own_records.values()) - _list_contents(records.values()))

    def pop_deleted_count(self) -> int:
        """Return how many checkpoints were deleted since the last call, and reset the count."""
        count, self._deleted_count = self._deleted_count, 0
        return count


def keep_review(contents: Contents, path: str, review: FileReview) -> KeptReview:
    """Convert a file's review to the form that a checkpoint stores."""
    return KeptReview(
        path=path,
        base=contents.name_of(review.base),
        now=contents.name_of(review.now),
        spans=tuple((s.old, s.old_end, s.new, s.new_end, s.birth, s.touched) for s in review.spans),
        origin=review.origin,
    )


def load_review(contents: Contents, stance: KeptReview) -> FileReview:
    """Return the review that `keep_review` stored. Raises UsageError if its content is gone."""
    from daiku.edits.rules.changes.review import FileReview, ReviewSpan  # when used

    spans = tuple(ReviewSpan(*span) for span in stance.spans)
    return FileReview(contents.content(stance.base), contents.content(stance.now), spans, stance.origin)


def add_outcome(contents: Contents, files: Sequence[KeptFile], patch: Patch) -> tuple[KeptFile, ...]:
    """Return `files` with the content that `patch` gives each of them."""
    after: dict[str, tuple[str | None, str | None]] = {}
    for change in patch.files:
        moved = change.kind == "rename" and change.to is not None
        stored = next((k.content for k in files if k.path == change.path), None)
        content = stored if moved and change.new is None else contents.name_of(change.new)
        after[change.path] = (None if moved else content, None)
        if moved and change.to is not None:
            after[change.to] = (content, change.path)
    return tuple(
        k.model_copy(update={"after": after[k.path][0], "known": True, "origin": after[k.path][1]})
        if k.path in after
        else k
        for k in files
    )


def unusable_checkpoint(kind: str, message: Text, hint: Text) -> UsageError:
    """Return the error for a checkpoint that cannot be used."""
    return UsageError(Failure.model_validate({"kind": kind, "message": message, "hint": hint}))


def _list_contents(checkpoints: Iterable[Checkpoint | None]) -> set[str]:
    names: set[str | None] = set()
    for checkpoint in checkpoints:
        if checkpoint is not None:
            names |= {name for file in checkpoint.files for name in (file.content, file.after)}
            names |= {name for stance in checkpoint.stances for name in (stance.base, stance.now)}
    return {name for name in names if name}


def _to_file_name(name: str) -> str:
    """Return a session's or checkpoint's id as a file name. Daiku's own ids are unchanged."""
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _list_record_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-*.json"))


def _read(path: Path) -> Checkpoint | None:
    try:
        return Checkpoint.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError):
        return None


def _make_private_folder(folder: Path) -> None:
    """Create a folder and its parents for this user only; `mkdir(parents=True)` leaves parents open."""
    if not folder.is_dir():
        _make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        fd = os.open(temporary, flags, 0o600)
    except FileNotFoundError:  # checked only then: files are written by the dozen
        _make_private_folder(path.parent)
        fd = os.open(temporary, flags, 0o600)
    with os.fdopen(fd, "wb", buffering=0) as out:
        view = memoryview(data)
        while view:
            view = view[out.write(view) :]
    temporary.replace(path)
