"""The review state of a session's files: a fold over its journal, with the contents from its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import CheckpointEvent, Edit, Restored, Review
from daiku.edits.rules.changes.review import (
    Content,
    FileReview,
    ReviewHunk,
    after_edit,
    after_typing,
    list_hunks,
)
from daiku.texts.rules.truncate import truncate_middle
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.contents import Checkpoint, KeptFile

STORED = 60_000
"""Largest number of characters of rejected lines that are recorded."""


@dataclass(slots=True)
class ReviewStates:
    """The reviews of all files as of chunk `seq`, and those just before each checkpoint."""

    seq: int = 0
    files: dict[str, FileReview] = field(default_factory=dict[str, FileReview])
    before: dict[str, Mapping[str, FileReview]] = field(default_factory=dict[str, Mapping[str, FileReview]])
    begun: list[str] = field(default_factory=list[str])
    """Checkpoints of edits that are not recorded as done: refused, or the process was killed."""

    def since(self, checkpoint_id: str) -> dict[str, FileReview]:
        """Return the files from a checkpoint on, each at its earliest state; empty if it is unknown."""
        earliest: dict[str, FileReview] = {}
        names = list(self.before)
        if checkpoint_id in self.before:
            for name in names[names.index(checkpoint_id) :]:
                for path, review in self.before[name].items():
                    earliest.setdefault(path, review)
        return earliest


def fold_chunk(states: ReviewStates, chunk: Chunk, store: CheckpointStore) -> None:
    """Fold one more chunk into `states`."""
    match chunk.event:
        case CheckpointEvent(checkpoint_id=name):
            states.begun.append(name)
        case Edit(checkpoint_id=name):
            states.begun = [other for other in states.begun if other != name]
            _apply_checkpoint(states, name, store)
            states.begun.clear()
        case Review(checkpoint_id=name) | Restored(redo=name) if name is not None:
            if name not in states.before:
                _apply_checkpoint(states, name, store)
        case _:
            pass
    states.seq = chunk.seq


def _apply_checkpoint(states: ReviewStates, name: str, store: CheckpointStore) -> None:
    try:
        checkpoint = store.require(name)
        before = states.before.get(name) or {  # set already if adopted before it was recorded
            store.current_path(checkpoint, file.path): _build_review_at(states, checkpoint, file, store)
            for file in checkpoint.files
        }
        after = _compute_reviews(checkpoint, before, store)
    except DaikuError:
        return  # too old, or its worktree is gone: its changes count as the user's
    states.before[name] = before
    states.files |= after


def _build_review_at(
    states: ReviewStates, checkpoint: Checkpoint, stored: KeptFile, store: CheckpointStore
) -> FileReview:
    """Return a file's review at a checkpoint. Changes up to then count as the user's."""
    content, path = store.content(stored.content), store.current_path(checkpoint, stored.path)
    adopt_interrupted_edit(states, path, content, store)
    review = states.files.get(path)
    return FileReview(content, content) if review is None else after_typing(review, content)


def adopt_interrupted_edit(states: ReviewStates, path: str, content: Content, store: CheckpointStore) -> None:
    """Apply an edit that was interrupted before it was recorded, if the file has its result."""
    review = states.files.get(path)
    if review is not None and review.now == content:
        return
    for name in states.begun:
        checkpoint = store.get(name)
        if checkpoint is not None and any(
            file.known
            and store.current_path(checkpoint, file.path) == path
            and store.content(file.after) == content
            for file in checkpoint.files
        ):
            states.begun.remove(name)
            _apply_checkpoint(states, name, store)
            return


def list_unrecorded_files(states: ReviewStates, store: CheckpointStore) -> tuple[str, ...]:
    """Return the files of edits that were started and may be missing in the journal."""
    checkpoints = (store.get(name) for name in states.begun)
    return tuple(
        dict.fromkeys(file.path for checkpoint in checkpoints if checkpoint for file in checkpoint.files)
    )


def _compute_reviews(
    checkpoint: Checkpoint, before: Mapping[str, FileReview], store: CheckpointStore
) -> dict[str, FileReview]:
    if checkpoint.kind != "edit":
        stored = {store.current_path(checkpoint, s.path): store.load_review(s) for s in checkpoint.stances}
        rest = {
            name: after_typing(before[name], store.content(file.after))
            for file in checkpoint.files
            if file.known and (name := store.current_path(checkpoint, file.path)) not in stored
        }
        return rest | stored
    reviews: dict[str, FileReview] = {}
    for file in checkpoint.files:
        name = store.current_path(checkpoint, file.path)
        after = store.content(file.after)
        if not file.known:
            reviews[name] = before[name]
        elif file.origin is None:
            # A moved file takes its review with it.
            reviews.setdefault(name, after_edit(before[name], after, checkpoint.id))
        else:
            origin = store.current_path(checkpoint, file.origin)
            reviews |= move_review(before, origin, name)
            reviews[name] = after_edit(reviews[name], after, checkpoint.id)
    return reviews


def move_review(before: Mapping[str, FileReview], origin: str, name: str) -> dict[str, FileReview]:
    """Return the review of `origin` under its new name. A file that was there is reviewed separately."""
    old, target = before[origin], before[name]
    if target.base is not None or target.open:
        return {origin: after_edit(old, None, name), name: target}
    first = old.origin or origin
    return {
        origin: FileReview(None, None),
        name: FileReview(old.base, old.now, old.spans, None if first == name or old.base is None else first),
    }


def format_changed_lines(hunk: ReviewHunk) -> tuple[str, ...]:
    """Return a hunk's lines prefixed with `-` and `+`, as in a git diff."""
    marked = [(mark, line) for mark, lines in (("-", hunk.old), ("+", hunk.new)) for line in lines]
    return tuple(
        f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
        for mark, line in marked
    )


def get_hunk_key(hunk: ReviewHunk) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
    """Return a key that is equal for the same hunk of a file in different sessions."""
    return hunk.span.new, hunk.span.new_end, hunk.old, hunk.new


def find_closed_hunks(
    before: FileReview, after: FileReview
) -> set[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
    """Return the keys of the hunks that were open before a decision and are closed after it."""
    return {get_hunk_key(h) for h in list_hunks(before)} - {get_hunk_key(h) for h in list_hunks(after)}


def format_rejected_lines(before: FileReview, after: FileReview) -> str:
    """Return the lines of the hunks that a rejection undid, with diff prefixes."""
    closed = find_closed_hunks(before, after)
    lines = (
        line
        for hunk in list_hunks(before)
        if get_hunk_key(hunk) in closed
        for line in format_changed_lines(hunk)
    )
    return truncate_middle("".join(lines), STORED)
