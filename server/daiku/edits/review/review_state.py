"""The review state of a session's files: a fold of its journal with what its checkpoints kept."""

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
    hunks_of,
)
from daiku.texts.rules.truncate import truncate_middle
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.contents import Checkpoint, KeptFile

STORED = 60_000
"""Characters of rejected lines that are kept on record."""


@dataclass(slots=True)
class ReviewStates:
    """The reviews of all files as of `seq`, and as they were just before each checkpoint."""

    seq: int = 0
    files: dict[str, FileReview] = field(default_factory=dict[str, FileReview])
    before: dict[str, Mapping[str, FileReview]] = field(default_factory=dict[str, Mapping[str, FileReview]])
    begun: list[str] = field(default_factory=list[str])
    """Checkpoints of edits of which it is not on record that they were made: refused, or the process died."""

    def since(self, checkpoint_id: str) -> dict[str, FileReview]:
        """Return the files at a checkpoint, each as the earliest one from there on has it; empty if unknown."""
        found: dict[str, FileReview] = {}
        names = list(self.before)
        if checkpoint_id in self.before:
            for name in names[names.index(checkpoint_id) :]:
                for path, review in self.before[name].items():
                    found.setdefault(path, review)
        return found


def follow(standing: ReviewStates, chunk: Chunk, store: CheckpointStore) -> None:
    """Take one more chunk into `standing`."""
    match chunk.event:
        case CheckpointEvent(checkpoint_id=name):
            standing.begun.append(name)
        case Edit(checkpoint_id=name):
            standing.begun = [other for other in standing.begun if other != name]
            _take(standing, name, store)
            standing.begun.clear()
        case Review(checkpoint_id=name) | Restored(redo=name) if name is not None:
            if name not in standing.before:
                _take(standing, name, store)
        case _:
            pass
    standing.seq = chunk.seq


def _take(standing: ReviewStates, name: str, store: CheckpointStore) -> None:
    try:
        checkpoint = store.require(name)
        before = standing.before.get(name) or {  # there where it was seen before it was on record
            store.current_path(checkpoint, kept.path): _at(standing, checkpoint, kept, store)
            for kept in checkpoint.files
        }
        after = _after(checkpoint, before, store)
    except DaikuError:
        return  # too old, or of a copy of the project that is gone: what it did counts as the person's
    standing.before[name] = before
    standing.files |= after


def _at(standing: ReviewStates, checkpoint: Checkpoint, kept: KeptFile, store: CheckpointStore) -> FileReview:
    """The review of a file when the checkpoint was taken: what changed until then was the person's."""
    content, path = store.content(kept.content), store.current_path(checkpoint, kept.path)
    adopt_interrupted_edit(standing, path, content, store)
    known = standing.files.get(path)
    return FileReview(content, content) if known is None else after_typing(known, content)


def adopt_interrupted_edit(
    standing: ReviewStates, path: str, content: Content, store: CheckpointStore
) -> None:
    """Take in an edit that was cut short before it was on record, where the file holds what it was to make."""
    known = standing.files.get(path)
    if known is not None and known.now == content:
        return
    for name in standing.begun:
        found = store.get(name)
        if found is not None and any(
            kept.known
            and store.current_path(found, kept.path) == path
            and store.content(kept.after) == content
            for kept in found.files
        ):
            standing.begun.remove(name)
            _take(standing, name, store)
            return


def unrecorded_edit_files(standing: ReviewStates, store: CheckpointStore) -> tuple[str, ...]:
    """Return the files of edits that were started and may be missing in the journal."""
    found = (store.get(name) for name in standing.begun)
    return tuple(dict.fromkeys(kept.path for checkpoint in found if checkpoint for kept in checkpoint.files))


def _after(
    checkpoint: Checkpoint, before: Mapping[str, FileReview], store: CheckpointStore
) -> dict[str, FileReview]:
    if checkpoint.kind != "edit":
        stood = {store.current_path(checkpoint, s.path): store.review_of(s) for s in checkpoint.stances}
        rest = {
            name: after_typing(before[name], store.content(kept.after))
            for kept in checkpoint.files
            if kept.known and (name := store.current_path(checkpoint, kept.path)) not in stood
        }
        return rest | stood
    found: dict[str, FileReview] = {}
    for kept in checkpoint.files:
        name = store.current_path(checkpoint, kept.path)
        after = store.content(kept.after)
        if not kept.known:
            found[name] = before[name]
        elif kept.origin is None:
            # Where it was moved away, its review goes along with it.
            found.setdefault(name, after_edit(before[name], after, checkpoint.id))
        else:
            origin = store.current_path(checkpoint, kept.origin)
            found |= renamed(before, origin, name)
            found[name] = after_edit(found[name], after, checkpoint.id)
    return found


def renamed(before: Mapping[str, FileReview], origin: str, name: str) -> dict[str, FileReview]:
    """Return the review of `origin` under its new name; a file that was there is decided on separately."""
    old, there = before[origin], before[name]
    if there.base is not None or there.open:
        return {origin: after_edit(old, None, name), name: there}
    first = old.origin or origin
    return {
        origin: FileReview(None, None),
        name: FileReview(old.base, old.now, old.spans, None if first == name or old.base is None else first),
    }


def changed_lines(hunk: ReviewHunk) -> tuple[str, ...]:
    """The lines of a hunk with `-` and `+` before them, as git shows them."""
    marked = [(mark, line) for mark, lines in (("-", hunk.old), ("+", hunk.new)) for line in lines]
    return tuple(
        f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
        for mark, line in marked
    )


def place_of(hunk: ReviewHunk) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
    """Return a key that is equal for the same hunk of a file in different sessions."""
    return hunk.span.new, hunk.span.new_end, hunk.old, hunk.new


def taken_away(
    before: FileReview, after: FileReview
) -> set[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
    """The places of the hunks that were open before a decision and are not after it."""
    return {place_of(h) for h in hunks_of(before)} - {place_of(h) for h in hunks_of(after)}


def rejected_lines(before: FileReview, after: FileReview) -> str:
    """The lines of the hunks that a rejection took back, with the marks of a diff."""
    gone = taken_away(before, after)
    lines = (line for hunk in hunks_of(before) if place_of(hunk) in gone for line in changed_lines(hunk))
    return truncate_middle("".join(lines), STORED)
