"""Changes of a session over the wire: listed, decided on, brought back."""

from __future__ import annotations

from pydantic import BaseModel

from daiku import api
from daiku.core.review import Blob, FileReview, Hunk, hunks_of
from daiku.domain.patches import FileKind
from daiku.lsp.connection import Connection
from daiku.runs.review import Brought, changed_lines


async def changes_list(c: Connection, p: api.ChangesParams) -> BaseModel:
    return await _listed(c, p.session_id)


async def changes_decide(c: Connection, p: api.DecideParams) -> BaseModel:
    reviews = (await c.app()).reviews
    checkpoint = await reviews.decide(p.session_id, p.decision, p.path, p.hunk_ids)
    return await _listed(c, p.session_id, checkpoint if p.decision == "reject" else None)


async def changes_original(c: Connection, p: api.OriginalParams) -> BaseModel:
    return api.OriginalResult(text=await (await c.app()).reviews.original(p.session_id, p.path))


async def checkpoint_restore(c: Connection, p: api.CheckpointRef) -> BaseModel:
    return restored(await (await c.app()).reviews.restore(p.checkpoint_id))


def restored(brought: Brought) -> api.RestoreResult:
    """What bringing files back did, for the wire."""
    return api.RestoreResult(files=brought.files, cannot_undo=brought.cannot_undo, checkpoint_id=brought.redo)


async def _listed(c: Connection, session: str, checkpoint: str | None = None) -> api.ChangesResult:
    found = await (await c.app()).reviews.changes(session)
    files = tuple(_file(path, review) for path, review in found.items())
    return api.ChangesResult(files=files, checkpoint_id=checkpoint)


def _file(path: str, review: FileReview) -> api.ChangedFile:
    hunks = hunks_of(review)
    return api.ChangedFile(
        path=path,
        kind=_kind(review),
        added=sum(len(hunk.new) for hunk in hunks),
        removed=sum(len(hunk.old) for hunk in hunks),
        hunks=tuple(_hunk(hunk) for hunk in hunks),
        before=review.origin,
        binary=isinstance(review.base, Blob) or isinstance(review.now, Blob),
    )


def _kind(review: FileReview) -> FileKind:
    if review.base is None:
        return "create"
    if review.now is None:
        return "delete"
    return "edit" if review.origin is None else "rename"


def _hunk(hunk: Hunk) -> api.ChangeHunk:
    span = hunk.span
    return api.ChangeHunk(
        hunk_id=hunk.id,
        old_start=span.old + (span.old < span.old_end),
        old_lines=span.old_end - span.old,
        new_start=span.new + (span.new < span.new_end),
        new_lines=span.new_end - span.new,
        text="".join(changed_lines(hunk)),
        touched=span.touched,
    )
