"""Review service: a session's changes, accepting and rejecting them, restoring files; all recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure, StaleVersionError, UsageError
from daiku.domain.events import Event, Restored, Review
from daiku.domain.sessions import Session
from daiku.domain.tools import Effect
from daiku.domain.work.patches import FileChange, FileStat, Irrevocable, Patch, ReviewDecision
from daiku.edits.review.review_state import (
    ReviewStates,
    adopt_interrupted_edit,
    changed_lines,
    follow,
    place_of,
    rejected_lines,
    taken_away,
    unrecorded_edit_files,
)
from daiku.edits.rules.changes.review import Blob, Content, FileReview, after_decision, after_typing, hunks_of
from daiku.run.recorded.history import copy_checkpoints, first_after, irrevocable
from daiku.run.runs import Runs
from daiku.texts.text import Text, text
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.contents import unusable_checkpoint

REMEMBERED = 32
"""Sessions whose fold is kept, so that a list reads only what is new."""
AT_ONCE = 100
"""Chunks that are folded without letting others have a turn."""
_SHOWN = 40
"""Lines of what is there now that a refusal shows."""


class RestoreOutcome(NamedTuple):
    """Files that were brought back, what that cannot undo, and the checkpoint to go back again."""

    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...]
    redo: str


@dataclass(frozen=True, slots=True)
class _Decision:
    """One file's part of a decision."""

    path: str
    before: FileReview
    after: FileReview
    hunks: int


class Reviews:
    """Reviews of one workspace's sessions. Methods raise DaikuError for what we expect."""

    def __init__(self, runs: Runs, store: CheckpointStore) -> None:
        self._runs = runs
        self._store = store
        self._workspace = runs.services.workspace
        self._journal = runs.services.journal
        self._known: dict[str, ReviewStates] = {}
        self._settled: dict[str, int] = {}
        """Sessions that had nothing left to decide on, as of the number of a chunk."""
        self._folding = asyncio.Lock()

    async def changes(self, session: str) -> dict[str, FileReview]:
        """The files with something to decide on, against the texts as they stand now."""
        found: dict[str, FileReview] = {}
        standing = await self._standing(session)
        for path in unrecorded_edit_files(standing, self._store):
            adopt_interrupted_edit(standing, path, await self._store.current_content(path), self._store)
        for path, review in sorted(standing.files.items()):
            present = after_typing(review, await self._store.current_content(path)) if review.open else review
            if present.open:
                found[path] = present
        return found

    async def everywhere(self) -> dict[str, dict[str, FileReview]]:
        """Return the undecided files of all conversations about this folder, by session, the last changed first."""
        found: dict[str, dict[str, FileReview]] = {}
        for session, last in self._journal.changed_sessions(self._runs.services.workspace_key).items():
            if self._settled.get(session) == last:
                continue
            with suppress(UsageError):  # deleted meanwhile, or of folders that are not open now
                if reviews := await self.changes(session):
                    found[session] = reviews
                elif not (await self._standing(session)).begun:
                    self._settled[session] = last
        return found

    async def original(self, session: str, path: str) -> str | None:
        """Return a file's text without its undecided changes; None if it did not exist or is not text."""
        review = (await self.changes(session)).get(path)
        content = await self._store.current_content(path) if review is None else review.base
        return content if isinstance(content, str) else None

    async def decide(
        self, session: str, decision: ReviewDecision, path: str | None, hunk_ids: Sequence[str] | None
    ) -> str | None:
        """Accept or reject changes; return the checkpoint for undo. Raises StaleVersionError: a hunk has changed."""
        async with self._store.change_lock:
            reviews = await self.changes(session)
            if hunk_ids is not None and not hunk_ids:
                return None
            if path is not None and path not in reviews:
                raise _stale(text("runs.none_left", path=path), "")
            chosen = reviews if path is None else {path: reviews[path]}
            if hunk_ids is not None:
                chosen = _with_hunks(chosen, hunk_ids)
            made = [_decided(name, review, decision, hunk_ids) for name, review in chosen.items()]
            made = [each for each in made if each.after != each.before]
            if not made:
                if path is None and not reviews:
                    return None
                raise _stale(text("runs.your_own_lines"), _present(chosen))
            checkpoint = await self._carry_out(session, decision, made)
            if decision == "accept":
                await self._accept_twins(session, made)
            return checkpoint

    async def _accept_twins(self, session: str, made: Sequence[_Decision]) -> None:
        """What a conversation shares with the one that it was forked from is accepted in both."""
        accepted = {each.path: taken_away(each.before, each.after) for each in made}
        for other, reviews in (await self.everywhere()).items():
            chosen = {
                path: [hunk.id for hunk in hunks_of(review) if place_of(hunk) in accepted[path]]
                for path, review in reviews.items()
                if other != session and path in accepted
            }
            whole = {path: None if _same(reviews[path], made, path) else ids for path, ids in chosen.items()}
            twins = [
                _decided(path, reviews[path], "accept", ids)
                for path, ids in whole.items()
                if ids is None or ids
            ]
            if twins := [each for each in twins if each.after != each.before]:
                await self._carry_out(other, "accept", twins)

    async def _carry_out(self, session: str, decision: ReviewDecision, made: Sequence[_Decision]) -> str:
        run = self._runs.last_run(session)
        checkpoint = await self._store.keep(session, run, _contents(made), _stances(made))
        if decision == "reject":
            await self._undo(made)
        events: list[Event] = [
            Review(
                decision=decision,
                path=each.path,
                hunks=each.hunks,
                checkpoint_id=checkpoint,
                lines=rejected_lines(each.before, each.after) if decision == "reject" else None,
            )
            for each in made
        ]
        await self._runs.record_action(session, *events)
        return checkpoint

    async def _undo(self, made: Sequence[_Decision]) -> None:
        changes = [change for each in made if (change := _change(each)) is not None]
        if changes:
            await self._workspace.apply(Patch(files=tuple(changes)), text("edits.reject"), exact=True)
        for each in made:
            if isinstance(each.after.now, Blob) and each.before.now is None:
                await self._store.put_back(each.path, each.after.now)

    async def restore(self, checkpoint_id: str, of: str | None = None) -> RestoreOutcome:
        """Restore the files of a checkpoint and later ones. Raises UsageError: unknown, or not of session `of`."""
        session = self._store.require(checkpoint_id).session
        if of not in (None, session):
            raise unusable_checkpoint(
                "not_found", text("runs.no_checkpoint", id=checkpoint_id), text("runs.list_again")
            )
        async with self._store.change_lock:
            stances = (await self._standing(session)).since(checkpoint_id)
            stays = irrevocable(self._journal.chunks(session), checkpoint_id, self._effect)
            returned = await self._store.bring_back(checkpoint_id)
            if stances:
                await self._store.record_review_states(returned.redo, stances)
            await self._runs.record_action(
                session,
                Restored(
                    checkpoint_id=checkpoint_id, files=returned.files, cannot_undo=stays, redo=returned.redo
                ),
            )
        return RestoreOutcome(returned.files, stays, returned.redo)

    async def undo(self, session: str) -> RestoreOutcome:
        """Bring back all that the last run with edits that stand changed. Raises UsageError."""
        return await self.restore(self._store.last_edits(session))

    async def fork(self, session: str, at_seq: int, *, restore_files: bool = False) -> Session:
        """Fork the conversation at `at_seq`, with its own undo and review; `restore_files`: restore the files too."""
        forked = self._journal.fork_session(session, at_seq, partial(copy_checkpoints, self._store))
        chunks = self._journal.chunks(session)
        point = first_after(self._store, chunks, at_seq)
        if restore_files and point is not None:
            async with self._store.change_lock:
                await self._go_back(forked.session_id, chunks, point)
        return self._journal.get_session(forked.session_id)

    async def _go_back(self, forked: str, chunks: Sequence[Chunk], point: str) -> None:
        files = (await self._standing(forked)).files
        returned = await self._store.bring_back(point, into=forked)
        redo = self._store.require(returned.redo)
        now = {kept.path: self._store.content(kept.after) for kept in redo.files}
        stances = {path: after_typing(files[path], content) for path, content in now.items() if path in files}
        await self._store.record_review_states(redo.id, stances)
        if self._journal.get_session(forked).last_seq:
            stays = irrevocable(chunks, point, self._effect)
            told = Restored(checkpoint_id=point, files=returned.files, cannot_undo=stays, redo=returned.redo)
            await self._runs.record_action(forked, told)

    def _effect(self, tool: str) -> Effect | None:
        spec = self._runs.services.registry.spec(tool)
        return None if spec is None else spec.effect

    async def _standing(self, session: str) -> ReviewStates:
        async with self._folding:
            standing = self._known.pop(session, None) or ReviewStates()
            chunks = self._journal.changes(session, standing.seq)
            if len(chunks) > AT_ONCE:
                await asyncio.to_thread(self._follow, standing, chunks)
            else:
                self._follow(standing, chunks)
            self._known[session] = standing
            while len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
            return standing

    def _follow(self, standing: ReviewStates, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            follow(standing, chunk, self._store)


def _with_hunks(reviews: Mapping[str, FileReview], ids: Sequence[str]) -> dict[str, FileReview]:
    """The files that the hunks are of. Raises StaleVersionError with what is there instead."""
    chosen = {
        path: review for path, review in reviews.items() if any(hunk.id in ids for hunk in hunks_of(review))
    }
    known = {hunk.id for review in chosen.values() for hunk in hunks_of(review)}
    if gone := [each for each in ids if each not in known]:
        what = text("runs.hunk_gone") if len(gone) == 1 else text("runs.hunks_gone", count=len(gone))
        raise _stale(what, _present(reviews))
    return chosen


def _decided(path: str, review: FileReview, decision: ReviewDecision, ids: Sequence[str] | None) -> _Decision:
    hunks = hunks_of(review)
    if decision == "reject" and ids is None and any(hunk.span.touched for hunk in hunks):
        ids = [
            hunk.id for hunk in hunks if not hunk.span.touched
        ]  # the person's own lines are not undone unasked
    after = after_decision(review, decision == "accept", ids)
    count = len(hunks) if ids is None else sum(hunk.id in ids for hunk in hunks)
    return _Decision(path, review, after, count)


def _same(review: FileReview, made: Sequence[_Decision], path: str) -> bool:
    """The whole file is open alike, and was decided on as a whole."""
    return any(
        each.path == path
        and not each.after.open
        and (each.before.base, each.before.now, each.before.origin)
        == (review.base, review.now, review.origin)
        for each in made
    )


def _present(reviews: Mapping[str, FileReview]) -> str:
    lines = [
        line
        for path, review in reviews.items()
        for hunk in hunks_of(review)
        for line in (f"{path}:{hunk.span.new + 1}\n", *changed_lines(hunk))
    ]
    return "".join([*lines[:_SHOWN], *(["…\n"] if len(lines) > _SHOWN else [])])


def _contents(made: Sequence[_Decision]) -> dict[str, tuple[Content, Content]]:
    found: dict[str, tuple[Content, Content]] = {}
    for each in made:
        back = _goes_back(each)
        found[each.path] = (each.before.now, None if back else each.after.now)
        if back is not None:
            found[back] = (None, each.after.now)
    return found


def _stances(made: Sequence[_Decision]) -> dict[str, FileReview]:
    found: dict[str, FileReview] = {}
    for each in made:
        back = _goes_back(each)
        found[each.path] = FileReview(None, None) if back else each.after
        if back is not None:
            found[back] = FileReview(each.after.now, each.after.now)
    return found


def _goes_back(each: _Decision) -> str | None:
    """The old name, where a renamed file was rejected as a whole."""
    rejected = each.after.now == each.before.base and each.after.origin is None
    return each.before.origin if rejected and each.after.base == each.before.base else None


def _change(each: _Decision) -> FileChange | None:
    old, new = each.before.now, each.after.now
    if (back := _goes_back(each)) is not None:
        texts = (old, new) if isinstance(old, str) and isinstance(new, str) else (None, None)
        return FileChange(path=each.path, kind="rename", old=texts[0], new=texts[1], to=back)
    if isinstance(new, Blob) or old == new:
        return None
    if old is None:
        return FileChange(path=each.path, kind="create", new=new)
    before = old if isinstance(old, str) else None
    if new is None:
        return FileChange(path=each.path, kind="delete", old=before)
    return FileChange(path=each.path, kind="edit", old=before, new=new)


def _stale(message: Text, now: str) -> StaleVersionError:
    hint = text("runs.there_now", lines=now) if now else text("runs.list_again")
    return StaleVersionError(Failure(kind="stale", message=message, hint=hint))
