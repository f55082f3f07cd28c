"""What became of the hunks that runs changed: open, accepted, refused, rejected or restored; the last word holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from daiku.core.changes.choose import shown_hunks
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ApprovalGiven, CheckpointEvent, Edit, Restored, Review

Fate: TypeAlias = Literal["open", "accepted", "doubtful", "refused", "rejected", "restored"]
"""`refused`: a person did not allow the edit; `rejected`: they took it back in a review; `restored`: by bringing files
back; `doubtful`: some of the file's hunks were rejected, and the record does not say which."""
TAKEN_BACK: frozenset[Fate] = frozenset({"refused", "rejected", "restored"})


class Hunk(NamedTuple):
    """A part of an edit: the call that made it, or asked to, in which run; the lines that it adds and removes."""

    run: str
    call_id: str
    path: str
    seq: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Standing(NamedTuple):
    """What became of a hunk, and the event that decided it."""

    fate: Fate
    seq: int


class Fates(NamedTuple):
    """All hunks of a session, each with how it stands."""

    hunks: tuple[Hunk, ...]
    standing: tuple[Standing, ...]

    def of(self, run: str, tops: Mapping[str, str]) -> tuple[tuple[Hunk, Standing], ...]:
        """Those that a run at the top made, with its nested runs."""
        both = zip(self.hunks, self.standing, strict=True)
        return tuple((hunk, standing) for hunk, standing in both if tops[hunk.run] == run)


def fates_of(chunks: Iterable[Chunk]) -> Fates:
    """What became of every hunk of a session, by its chunks in order."""
    known = _Following([], [], {}, {})
    for chunk in chunks:
        _follow(known, chunk)
    return Fates(tuple(known.hunks), tuple(known.standing))


class _Following(NamedTuple):
    hunks: list[Hunk]
    standing: list[Standing]
    before: dict[str, tuple[Standing, ...]]
    """How all stood when a checkpoint was taken."""
    asked: dict[str, ApprovalAsked]


def _follow(known: _Following, chunk: Chunk) -> None:
    event, seq = chunk.event, chunk.seq
    match event:
        case CheckpointEvent(checkpoint_id=name):
            known.before.setdefault(name, tuple(known.standing))
        case Edit():
            known.before.setdefault(event.checkpoint_id, tuple(known.standing))
            _add(known, _hunks_of_edit(event, chunk.run, seq), Standing("open", seq))
        case ApprovalAsked(kind="edit"):
            known.asked[event.approval_id] = event
        case ApprovalGiven(unattended=False) if (asked := known.asked.get(event.approval_id)) is not None:
            _add(known, _refused(asked, event, chunk.run, seq), Standing("refused", seq))
        case Review(checkpoint_id=name):
            if name is not None:
                known.before.setdefault(name, tuple(known.standing))
            _decide(known, event, seq)
        case Restored(checkpoint_id=name, redo=redo):
            if redo is not None:
                known.before.setdefault(redo, tuple(known.standing))
            _go_back(known, known.before.get(name), seq)
        case _:
            pass


def _add(known: _Following, hunks: Sequence[Hunk], standing: Standing) -> None:
    known.hunks.extend(hunks)
    known.standing.extend(standing for _ in hunks)


def _go_back(known: _Following, then: tuple[Standing, ...] | None, seq: int) -> None:
    if then is None:  # a checkpoint of another session: nothing of this one was made after it
        return
    for at, (hunk, now) in enumerate(zip(known.hunks, known.standing, strict=True)):
        stood = then[at] if at < len(then) else Standing("restored", seq)
        if now.fate != "refused" and hunk.seq < seq and stood.fate != now.fate:
            known.standing[at] = stood


def _decide(known: _Following, event: Review, seq: int) -> None:
    there = [
        at
        for at, hunk in enumerate(known.hunks)
        if hunk.path == event.path and known.standing[at].fate in ("open", "doubtful")
    ]
    whole = not event.hunks or event.hunks >= len(there)
    if event.decision == "accept":
        if whole:
            _set(known, there, Standing("accepted", seq))
        return
    if event.lines is not None:
        _set(known, _among(known.hunks, there, event.lines), Standing("rejected", seq))
    else:
        _set(known, there, Standing("rejected" if whole else "doubtful", seq))


def _set(known: _Following, places: Iterable[int], standing: Standing) -> None:
    for at in places:
        known.standing[at] = standing


def _among(hunks: Sequence[Hunk], there: Sequence[int], lines: str) -> list[int]:
    """Which of the open hunks were rejected, by the lines that this took away and brought back. One that a later
    edit changed again counts with it; of one without lines nothing more can be told."""
    gone, back = set(_marked(lines.splitlines(), "+")), set(_marked(lines.splitlines(), "-"))
    found: list[int] = []
    for at in there:
        added, removed = _telling(hunks[at].added), _telling(hunks[at].removed)
        later = {line for other in there if other > at for line in hunks[other].removed}
        inside = _mostly(added, gone | later) if added else _mostly(removed, back)
        touched = not (added.isdisjoint(gone) and removed.isdisjoint(back))
        if (inside and touched) or not (added or removed or lines):
            found.append(at)
    return found


def _telling(lines: Sequence[str]) -> set[str]:
    """Lines that say which hunk they are of: a lone bracket is in many."""
    return {line for line in lines if sum(char.isalnum() for char in line) > 1} or set(lines)


def _mostly(some: set[str], whole: set[str]) -> bool:
    """Nearly all: long texts are kept in part."""
    return len(some & whole) >= 0.8 * len(some)


def _refused(asked: ApprovalAsked, given: ApprovalGiven, run: str, seq: int) -> tuple[Hunk, ...]:
    hunks = _hunks_of(asked.preview, run, asked.call_id, seq)
    if given.decision.startswith("reject"):
        return hunks or (Hunk(run, asked.call_id, "", seq),)
    if given.hunks is None:
        return ()
    return tuple(hunk for number, hunk in enumerate(hunks) if number not in given.hunks)


def _hunks_of_edit(event: Edit, run: str, seq: int) -> tuple[Hunk, ...]:
    """The hunks of its diff, and one for each file that the diff does not show."""
    paths = {stat.path for stat in event.files}
    shown = tuple(hunk for hunk in _hunks_of(event.diff, run, event.call_id, seq) if hunk.path in paths)
    rest = sorted(paths - {hunk.path for hunk in shown})
    return (*shown, *(Hunk(run, event.call_id, path, seq) for path in rest))


def _hunks_of(diff: str, run: str, call_id: str, seq: int) -> tuple[Hunk, ...]:
    return tuple(
        Hunk(run, call_id, _path_of(part.head), seq, _marked(lines, "+"), _marked(lines, "-"))
        for part in shown_hunks(diff)
        for lines in [part.body.splitlines()[1:]]
    )


def _marked(lines: Iterable[str], mark: str) -> tuple[str, ...]:
    """The lines with this mark, without it; blank ones say nothing."""
    return tuple(line[1:] for line in lines if line.startswith(mark) and line[1:].strip())


_HEADS = ("+++ b/", "rename to ", "--- a/")


def _path_of(head: str) -> str:
    """The file that the head of a diff is about, by its name after the change."""
    lines = head.splitlines()
    for mark in _HEADS:
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    first = lines[0] if lines else ""
    return first.rpartition(" b/")[2] if first.startswith("diff --git ") else ""
