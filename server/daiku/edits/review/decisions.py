"""Review service: lists a session's changes, accepts, rejects and restores them, and records each action."""

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
    find_closed_hunks,
    fold_chunk,
    format_changed_lines,
    format_rejected_lines,
    get_hunk_key,
    list_unrecorded_files,
)
from daiku.edits.rules.changes.review import (
    Blob,
    Content,
    FileReview,
    after_decision,
    after_typing,
    list_hunks,
)
from daiku.run.recorded.history import copy_checkpoints, first_checkpoint_after, irrevocable
from daiku.run.runs import Runs
from daiku.texts.text import Text, text
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.contents import unusable_checkpoint

REMEMBERED = 32
"""Number of sessions whose review state is cached, so that only new chunks are read."""
AT_ONCE = 100
"""Number of chunks that are folded in the event loop; more are folded in a thread."""
_MAX_LINES_SHOWN = 40
"""Largest number of current lines that a refusal shows."""


class RestoreOutcome(NamedTuple):
    """Restored files, effects that cannot be undone, and the checkpoint that undoes the restore."""

    files: tuple[FileStat, ...]
    cannot_undo: tuple[Irrevocable, ...]
    redo: str


@dataclass(frozen=True, slots=True)
class _Decision:
    """The part of a decision that concerns one file: its review before and after, and the number of hunks."""

    path: str
    before: FileReview
    after: FileReview
    hunks: int


class Reviews:
    """Reviews of one workspace's sessions. Methods raise DaikuError for expected errors."""

    def __init__(self, runs: Runs, store: CheckpointStore) -> None:
        self._runs = runs
        self._store = store
        self._workspace = runs.services.workspace
        self._journal = runs.services.journal
        self._cache: dict[str, ReviewStates] = {}
        self._settled: dict[str, int] = {}
        """Sessions without undecided changes: the number of the last chunk at the time of the check."""
        self._folding = asyncio.Lock()

    async def changes(self, session: str) -> dict[str, FileReview]:
        """Return the files with undecided changes, compared with the current contents."""
        changed: dict[str, FileReview] = {}
        states = await self._load_states(session)
        for path in list_unrecorded_files(states, self._store):
            adopt_interrupted_edit(states, path, await self._store.current_content(path), self._store)
        for path, review in sorted(states.files.items()):
            present = after_typing(review, await self._store.current_content(path)) if review.open else review
            if present.open:
                changed[path] = present
        return changed

    async def everywhere(self) -> dict[str, dict[str, FileReview]]:
        """Return the undecided files of this folder's sessions, by session, last changed first."""
        by_session: dict[str, dict[str, FileReview]] = {}
        for session, last in self._journal.changed_sessions(self._runs.services.workspace_key).items():
            if self._settled.get(session) == last:
                continue
            with suppress(UsageError):  # deleted meanwhile, or its folders are not open
                if reviews := await self.changes(session):
                    by_session[session] = reviews
                elif not (await self._load_states(session)).begun:
                    self._settled[session] = last
        return by_session

    async def original(self, session: str, path: str) -> str | None:
        """Return a file's text without its undecided changes; None if it did not exist or is not text."""
        review = (await self.changes(session)).get(path)
        content = await self._store.current_content(path) if review is None else review.base
        return content if isinstance(content, str) else None

    async def decide(
        self, session: str, decision: ReviewDecision, path: str | None, hunk_ids: Sequence[str] | None
    ) -> str | None:
        """Accept or reject changes; return the checkpoint for undo.

        Raises StaleVersionError if a hunk has changed.
        """
        async with self._store.change_lock:
            reviews = await self.changes(session)
            if hunk_ids is not None and not hunk_ids:
                return None
            if path is not None and path not in reviews:
                raise _stale_error(text("runs.none_left", path=path), "")
            chosen = reviews if path is None else {path: reviews[path]}
            if hunk_ids is not None:
                chosen = _select_files(chosen, hunk_ids)
            decisions = [_decide_file(name, review, decision, hunk_ids) for name, review in chosen.items()]
            decisions = [d for d in decisions if d.after != d.before]
            if not decisions:
                if path is None and not reviews:
                    return None
                raise _stale_error(text("runs.your_own_lines"), _format_current_lines(chosen))
            checkpoint = await self._carry_out(session, decision, decisions)
            if decision == "accept":
                await self._accept_in_forks(session, decisions)
            return checkpoint

    async def _accept_in_forks(self, session: str, decisions: Sequence[_Decision]) -> None:
        """Accept the same changes in sessions that share them through a fork."""
        accepted = {d.path: find_closed_hunks(d.before, d.after) for d in decisions}
        for other, reviews in (await self.everywhere()).items():
            chosen = {
                path: [hunk.id for hunk in list_hunks(review) if get_hunk_key(hunk) in accepted[path]]
                for path, review in reviews.items()
                if other != session and path in accepted
            }
            hunk_ids = {
                path: None if _has_equal_decision(reviews[path], decisions, path) else ids
                for path, ids in chosen.items()
            }
            twins = [
                _decide_file(path, reviews[path], "accept", ids)
                for path, ids in hunk_ids.items()
                if ids is None or ids
            ]
            if twins := [twin for twin in twins if twin.after != twin.before]:
                await self._carry_out(other, "accept", twins)

    async def _carry_out(self, session: str, decision: ReviewDecision, decisions: Sequence[_Decision]) -> str:
        run = self._runs.last_run(session)
        checkpoint = await self._store.keep(
            session, run, _collect_contents(decisions), _collect_reviews(decisions)
        )
        if decision == "reject":
            await self._restore_rejected(decisions)
        events: list[Event] = [
            Review(
                decision=decision,
                path=d.path,
                hunks=d.hunks,
                checkpoint_id=checkpoint,
                lines=format_rejected_lines(d.before, d.after) if decision == "reject" else None,
            )
            for d in decisions
        ]
        await self._runs.record_action(session, *events)
        return checkpoint

    async def _restore_rejected(self, decisions: Sequence[_Decision]) -> None:
        changes = [change for decision in decisions if (change := _build_change(decision)) is not None]
        if changes:
            await self._workspace.apply(Patch(files=tuple(changes)), text("edits.reject"), exact=True)
        for decision in decisions:
            if isinstance(decision.after.now, Blob) and decision.before.now is None:
                await self._store.put_back(decision.path, decision.after.now)

    async def restore(self, checkpoint_id: str, of: str | None = None) -> RestoreOutcome:
        """Restore the files of a checkpoint and later ones.

        Raises UsageError if unknown, or not of session `of`.
        """
        session = self._store.require(checkpoint_id).session
        if of not in (None, session):
            raise unusable_checkpoint(
                "not_found", text("runs.no_checkpoint", id=checkpoint_id), text("runs.list_again")
            )
        async with self._store.change_lock:
            stances = (await self._load_states(session)).since(checkpoint_id)
            cannot_undo = irrevocable(self._journal.chunks(session), checkpoint_id, self._find_effect)
            restored = await self._store.bring_back(checkpoint_id)
            if stances:
                await self._store.record_review_states(restored.redo, stances)
            await self._runs.record_action(
                session,
                Restored(
                    checkpoint_id=checkpoint_id,
                    files=restored.files,
                    cannot_undo=cannot_undo,
                    redo=restored.redo,
                ),
            )
        return RestoreOutcome(restored.files, cannot_undo, restored.redo)

    async def undo(self, session: str) -> RestoreOutcome:
        """Undo all edits of the last run whose edits are in effect. Raises UsageError."""
        return await self.restore(self._store.last_edits(session))

    async def fork(self, session: str, at_seq: int, *, restore_files: bool = False) -> Session:
        """Fork the session at chunk `at_seq`, with its own undo and review.

        `restore_files`: restore the files too.
        """
        forked = self._journal.fork_session(session, at_seq, partial(copy_checkpoints, self._store))
        chunks = self._journal.chunks(session)
        point = first_checkpoint_after(self._store, chunks, at_seq)
        if restore_files and point is not None:
            async with self._store.change_lock:
                await self._restore_fork(forked.session_id, chunks, point)
        return self._journal.get_session(forked.session_id)

    async def _restore_fork(self, forked: str, chunks: Sequence[Chunk], point: str) -> None:
        files = (await self._load_states(forked)).files
        restored = await self._store.bring_back(point, into=forked)
        redo = self._store.require(restored.redo)
        now = {kept.path: self._store.content(kept.after) for kept in redo.files}
        stances = {path: after_typing(files[path], content) for path, content in now.items() if path in files}
        await self._store.record_review_states(redo.id, stances)
        if self._journal.get_session(forked).last_seq:
            cannot_undo = irrevocable(chunks, point, self._find_effect)
            event = Restored(
                checkpoint_id=point, files=restored.files, cannot_undo=cannot_undo, redo=restored.redo
            )
            await self._runs.record_action(forked, event)

    def _find_effect(self, tool: str) -> Effect | None:
        spec = self._runs.services.registry.spec(tool)
        return None if spec is None else spec.effect

    async def _load_states(self, session: str) -> ReviewStates:
        async with self._folding:
            states = self._cache.pop(session, None) or ReviewStates()
            chunks = self._journal.changes(session, states.seq)
            if len(chunks) > AT_ONCE:
                await asyncio.to_thread(self._fold_chunks, states, chunks)
            else:
                self._fold_chunks(states, chunks)
            self._cache[session] = states
            while len(self._cache) > REMEMBERED:
                del self._cache[next(iter(self._cache))]
            return states

    def _fold_chunks(self, states: ReviewStates, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            fold_chunk(states, chunk, self._store)


def _select_files(reviews: Mapping[str, FileReview], ids: Sequence[str]) -> dict[str, FileReview]:
    """Return the files with these hunks. Raises StaleVersionError, showing the current lines."""
    chosen = {
        path: review for path, review in reviews.items() if any(hunk.id in ids for hunk in list_hunks(review))
    }
    known_ids = {hunk.id for review in chosen.values() for hunk in list_hunks(review)}
    if gone := [hunk_id for hunk_id in ids if hunk_id not in known_ids]:
        what = text("runs.hunk_gone") if len(gone) == 1 else text("runs.hunks_gone", count=len(gone))
        raise _stale_error(what, _format_current_lines(reviews))
    return chosen


def _decide_file(
    path: str, review: FileReview, decision: ReviewDecision, ids: Sequence[str] | None
) -> _Decision:
    hunks = list_hunks(review)
    if decision == "reject" and ids is None and any(hunk.span.touched for hunk in hunks):
        # Lines that the user edited are rejected only if chosen explicitly.
        ids = [hunk.id for hunk in hunks if not hunk.span.touched]
    after = after_decision(review, decision == "accept", ids)
    count = len(hunks) if ids is None else sum(hunk.id in ids for hunk in hunks)
    return _Decision(path, review, after, count)


def _has_equal_decision(review: FileReview, decisions: Sequence[_Decision], path: str) -> bool:
    """Return True if a decision on the complete file `path` was made for an equal review."""
    return any(
        d.path == path
        and not d.after.open
        and (d.before.base, d.before.now, d.before.origin) == (review.base, review.now, review.origin)
        for d in decisions
    )


def _format_current_lines(reviews: Mapping[str, FileReview]) -> str:
    lines = [
        line
        for path, review in reviews.items()
        for hunk in list_hunks(review)
        for line in (f"{path}:{hunk.span.new + 1}\n", *format_changed_lines(hunk))
    ]
    return "".join([*lines[:_MAX_LINES_SHOWN], *(["…\n"] if len(lines) > _MAX_LINES_SHOWN else [])])


def _collect_contents(decisions: Sequence[_Decision]) -> dict[str, tuple[Content, Content]]:
    contents: dict[str, tuple[Content, Content]] = {}
    for decision in decisions:
        old_name = _find_restored_name(decision)
        contents[decision.path] = (decision.before.now, None if old_name else decision.after.now)
        if old_name is not None:
            contents[old_name] = (None, decision.after.now)
    return contents


def _collect_reviews(decisions: Sequence[_Decision]) -> dict[str, FileReview]:
    reviews: dict[str, FileReview] = {}
    for decision in decisions:
        old_name = _find_restored_name(decision)
        reviews[decision.path] = FileReview(None, None) if old_name else decision.after
        if old_name is not None:
            reviews[old_name] = FileReview(decision.after.now, decision.after.now)
    return reviews


def _find_restored_name(decision: _Decision) -> str | None:
    """Return the old name if a rename was rejected completely; None otherwise."""
    rejected = decision.after.now == decision.before.base and decision.after.origin is None
    return decision.before.origin if rejected and decision.after.base == decision.before.base else None


def _build_change(decision: _Decision) -> FileChange | None:
    old, new = decision.before.now, decision.after.now
    if (old_name := _find_restored_name(decision)) is not None:
        texts = (old, new) if isinstance(old, str) and isinstance(new, str) else (None, None)
        return FileChange(path=decision.path, kind="rename", old=texts[0], new=texts[1], to=old_name)
    if isinstance(new, Blob) or old == new:
        return None
    if old is None:
        return FileChange(path=decision.path, kind="create", new=new)
    before = old if isinstance(old, str) else None
    if new is None:
        return FileChange(path=decision.path, kind="delete", old=before)
    return FileChange(path=decision.path, kind="edit", old=before, new=new)


def _stale_error(message: Text, now: str) -> StaleVersionError:
    hint = text("runs.there_now", lines=now) if now else text("runs.list_again")
    return StaleVersionError(Failure(kind="stale", message=message, hint=hint))
