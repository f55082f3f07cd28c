"""The user's decisions on the edits of runs: accepted, refused, rejected, or restored; the last one counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from daiku.core.changes.choose import shown_hunks
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ApprovalGiven, CheckpointEvent, Edit, Restored, Review

Fate: TypeAlias = Literal["open", "accepted", "partial", "refused", "rejected", "restored"]
"""`refused`: the user did not allow the edit; `rejected`: in a review; `restored`: they restored an earlier checkpoint;
`partial`: they refused or rejected a part of it."""


class Standing(NamedTuple):
    """The fate of an edit, and the number of the chunk that decided it."""

    fate: Fate
    seq: int


class FileEdit(NamedTuple):
    """The change that one edit of a run made to one file."""

    run: str
    path: str
    seq: int
    hunks: int = 0
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()


class Edits(NamedTuple):
    """All edits of a session, each with its standing."""

    files: list[FileEdit]
    standings: list[Standing]
    before: dict[str, tuple[Standing, ...]]
    """All standings at the time of each checkpoint."""

    def add(self, edit: FileEdit, fate: Fate) -> None:
        """Add an edit with its first standing."""
        self.files.append(edit)
        self.standings.append(Standing(fate, edit.seq))

    def keep(self, checkpoint: str | None) -> None:
        """Keep all standings under the name of a checkpoint, unless it has some."""
        if checkpoint is not None:
            self.before.setdefault(checkpoint, tuple(self.standings))


def edits_of(chunks: Iterable[Chunk]) -> Edits:
    """Return the edits of a session, by its chunks in order."""
    edits = Edits([], [], {})
    asked: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case CheckpointEvent(checkpoint_id=checkpoint):
                edits.keep(checkpoint)
            case Edit() as event:
                edits.keep(event.checkpoint_id)
                for stat in event.files:
                    edits.add(_read_edit(event.diff, stat.path, chunk.run, chunk.seq), "open")
            case ApprovalAsked(kind="edit", approval_id=approval):
                asked.add(approval)
            case ApprovalGiven(unattended=False) as given if given.approval_id in asked:
                if given.decision.startswith("reject"):
                    edits.add(FileEdit(chunk.run, "", chunk.seq), "refused")
                elif given.hunks is not None:
                    edits.add(FileEdit(chunk.run, "", chunk.seq), "partial")
            case Review() as review:
                edits.keep(review.checkpoint_id)
                _decide(edits, review, chunk.seq)
            case Restored(checkpoint_id=checkpoint, redo=redo):
                edits.keep(redo)
                _restore(edits, edits.before.get(checkpoint), chunk.seq)
            case _:
                pass
    return edits


def _restore(edits: Edits, then: tuple[Standing, ...] | None, seq: int) -> None:
    """Give every edit the standing that it had at a checkpoint; None is a checkpoint of another session."""
    if then is None:
        return
    for at, now in enumerate(edits.standings):
        stood = then[at] if at < len(then) else Standing("restored", seq)
        if edits.files[at].path and stood.fate != now.fate:
            edits.standings[at] = stood


def _decide(edits: Edits, review: Review, seq: int) -> None:
    """Apply a review to the open edits of its file."""
    at = [n for n, each in enumerate(edits.files) if each.path == review.path]
    at = [n for n in at if edits.standings[n].fate in ("open", "partial")]
    if _is_of_all([edits.files[n] for n in at], review):
        fate: Fate = "accepted" if review.decision == "accept" else "rejected"
    elif review.decision == "reject":
        fate = "partial"
    else:
        return
    for n in at:
        edits.standings[n] = Standing(fate, seq)


def _is_of_all(files: Sequence[FileEdit], review: Review) -> bool:
    """Return True if a review decides on all that these edits did to its file."""
    if not review.hunks or review.hunks >= sum(each.hunks for each in files):
        return True
    left = frozenset[str]()
    for each in files:
        left = (left - each.removed) | each.added
    return bool(left) and left <= _marked((review.lines or "").splitlines(), "+")


def _read_edit(diff: str, path: str, run: str, seq: int) -> FileEdit:
    """Read what a diff does to one file."""
    hunks = [each.body.splitlines()[1:] for each in shown_hunks(diff) if _path_of(each.head) == path]
    lines = [line for hunk in hunks for line in hunk]
    return FileEdit(run, path, seq, len(hunks), _marked(lines, "+"), _marked(lines, "-"))


def _marked(lines: Iterable[str], mark: str) -> frozenset[str]:
    """Return the lines with this mark, without it; blank ones are left out."""
    return frozenset(line[1:] for line in lines if line.startswith(mark) and line[1:].strip())


_HEADS = ("+++ b/", "rename to ", "--- a/")


def _path_of(head: str) -> str:
    """Return the path of a file after the change, by the head of its diff."""
    lines = head.splitlines()
    for mark in _HEADS:
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    first = lines[0] if lines else ""
    return first.rpartition(" b/")[2] if first.startswith("diff --git ") else ""
