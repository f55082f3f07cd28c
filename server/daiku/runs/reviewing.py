"""How the review of a session's files stands: the fold of its journal with what its checkpoints kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from daiku.core.review import FileReview, edited, typed
from daiku.domain.errors import DaikuError
from daiku.domain.events import Chunk, Edited, Restored, Reviewed
from daiku.tools.checkpoints import CheckpointStore
from daiku.tools.keeping import Checkpoint, Kept


@dataclass(slots=True)
class Standing:
    """The reviews of all files as of `seq`, and as they were just before each checkpoint."""

    seq: int = 0
    files: dict[str, FileReview] = field(default_factory=dict[str, FileReview])
    before: dict[str, Mapping[str, FileReview]] = field(default_factory=dict[str, Mapping[str, FileReview]])

    def since(self, checkpoint_id: str) -> dict[str, FileReview]:
        """How the files stood at a checkpoint: each of those that it and later ones touched, as the
        earliest has it. Empty where the checkpoint is not of this session."""
        found: dict[str, FileReview] = {}
        names = list(self.before)
        if checkpoint_id in self.before:
            for name in names[names.index(checkpoint_id) :]:
                for path, review in self.before[name].items():
                    found.setdefault(path, review)
        return found


def follow(standing: Standing, chunk: Chunk, store: CheckpointStore) -> None:
    """Take one more chunk into `standing`."""
    match chunk.event:
        case Edited(checkpoint_id=name):
            _take(standing, name, store)
        case Reviewed(checkpoint_id=name) | Restored(redo=name) if name is not None:
            if name not in standing.before:
                _take(standing, name, store)
        case _:
            pass
    standing.seq = chunk.seq


def _take(standing: Standing, name: str, store: CheckpointStore) -> None:
    try:
        checkpoint = store.need(name)
        before = {
            store.placed(checkpoint, kept.path): _at(standing, checkpoint, kept, store)
            for kept in checkpoint.files
        }
        after = _after(checkpoint, before, store)
    except (
        DaikuError
    ):  # too old, or of a copy of the project that is gone: what it did counts as the person's
        return
    standing.before[name] = before
    standing.files |= after


def _at(standing: Standing, checkpoint: Checkpoint, kept: Kept, store: CheckpointStore) -> FileReview:
    """The review of a file when the checkpoint was taken: what changed until then was the person's."""
    content = store.content(kept.content)
    known = standing.files.get(store.placed(checkpoint, kept.path))
    return FileReview(content, content) if known is None else typed(known, content)


def _after(
    checkpoint: Checkpoint, before: Mapping[str, FileReview], store: CheckpointStore
) -> dict[str, FileReview]:
    if checkpoint.kind != "edit":
        stood = {store.placed(checkpoint, s.path): store.review_of(s) for s in checkpoint.stances}
        rest = {
            name: typed(before[name], store.content(kept.after))
            for kept in checkpoint.files
            if kept.known and (name := store.placed(checkpoint, kept.path)) not in stood
        }
        return rest | stood
    found: dict[str, FileReview] = {}
    for kept in checkpoint.files:
        name = store.placed(checkpoint, kept.path)
        after = store.content(kept.after)
        if not kept.known:
            found[name] = before[name]
        elif kept.origin is None:
            # Where it was moved away, its review goes along with it.
            found.setdefault(name, edited(before[name], after, checkpoint.id))
        else:
            origin = store.placed(checkpoint, kept.origin)
            found |= moved(before, origin, name)
            found[name] = edited(found[name], after, checkpoint.id)
    return found


def moved(before: Mapping[str, FileReview], origin: str, name: str) -> dict[str, FileReview]:
    """The review of `origin` under its new name. Where there was a file of that name to decide on, both
    are decided on for themselves."""
    old, there = before[origin], before[name]
    if there.base is not None or there.open:
        return {origin: edited(old, None, name), name: there}
    first = old.origin or origin
    return {
        origin: FileReview(None, None),
        name: FileReview(old.base, old.now, old.spans, None if first == name or old.base is None else first),
    }
