"""Score lessons by the record of a run: +1 if its command passed, −1 if it was replaced or the user undid it.

Only a lesson that the run cited is scored. A lesson that names no command is scored by the edits of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from daiku.domain.chunks import Chunk, top_runs
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Restored,
    Review,
    RunFinished,
    RunStarted,
)
from daiku.domain.held import Lesson, Reflected, Tag
from daiku.domain.playbook import Observation, Verdict, Why
from daiku.domain.runs import TerminalStatus, is_success
from daiku.edits.rules.changes.choose import shown_hunks
from daiku.playbook.rules.evidence.commands import (
    Tried,
    advised_commands,
    looks_like_a_command,
    replacements,
    runs_command,
    tried_commands,
)
from daiku.run.rules.state.fold import fold

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


NONE, WEAK, STRONG = 0, 1, 2
"""Weight of evidence: none, the whole run, and what became of the advice itself."""
OPEN: frozenset[Why] = frozenset({"command_failed", "unclear"})
"""Reasons for a neutral verdict although something failed: here the Reflector's `harmful` decides."""
_OF_FATE: Mapping[Fate, Why] = MappingProxyType(
    {"refused": "edits_refused", "rejected": "edits_rejected", "restored": "edits_restored"}
)
_OF_STATUS: Mapping[TerminalStatus, Why] = MappingProxyType(
    {"cancelled": "run_cancelled", "failed": "run_failed", "limit": "run_limited"}
)


class Evidence(NamedTuple):
    """The reason for the verdict on a lesson, and the number of its chunk."""

    why: Why
    verdict: Verdict
    seq: int
    weight: int = STRONG


class Judged(NamedTuple):
    """What a run showed of one lesson, the weight of the evidence, and the time of the deciding event."""

    seen: Observation
    weight: int
    time: str


class Outcome(NamedTuple):
    """The verdicts of a top-level run on the lessons that it was told."""

    run: str
    bullets: tuple[Judged, ...]


def outcomes_of(chunks: Iterable[Chunk]) -> tuple[Outcome, ...]:
    """Return the outcomes of all ended top-level runs of a session, by its chunks in any order.

    Chunks after the end of a run count too: a later review or undo decides on its edits."""
    ordered = sorted({chunk.seq: chunk for chunk in chunks}.values(), key=lambda chunk: chunk.seq)
    tops, edits, tags = top_runs(ordered), edits_of(ordered), dict[tuple[str, str], Tag]()
    by_top: dict[str, list[Chunk]] = {}
    for chunk in ordered:
        by_top.setdefault(tops[chunk.run], []).append(chunk)
        if isinstance(chunk.event, Reflected):
            tags |= {(tops[chunk.run], each.id): each.tag for each in chunk.event.reflection.tags}
    times = {chunk.seq: chunk.time for chunk in ordered}
    lessons: dict[str, Lesson] = {}
    outcomes: list[Outcome] = []
    for top, own in by_top.items():
        here = {each.id: each for c in own if isinstance(c.event, RunStarted) for each in c.event.lessons}
        lessons |= here
        end = next((n for n, c in enumerate(own) if c.run == top and isinstance(c.event, RunFinished)), None)
        if end is None:
            continue
        standings = zip(edits.files, edits.standings, strict=True)
        mine = tuple(each for each in standings if tops[each[0].run] == top)
        evidence = _judge_run(own[: end + 1], mine, lessons, here)
        judged = (
            _to_judged(own[end], lessons[name], _apply_tag(each, tags.get((top, name))), times[each.seq])
            for name, each in evidence.items()
        )
        outcomes.append(Outcome(top, tuple(judged)))
    return tuple(outcomes)


def latest(outcomes: Iterable[Outcome]) -> tuple[Judged, ...]:
    """Return one verdict on each lesson from several records of one run: a session and its forks.

    The greatest weight counts; of the same weight the later one."""
    found: dict[str, Judged] = {}
    for each in (each for outcome in outcomes for each in outcome.bullets):
        old = found.get(each.seen.bullet)
        if old is None or (each.weight, each.time) > (old.weight, old.time):
            found[each.seen.bullet] = each
    return tuple(found.values())


def _to_judged(end: Chunk, lesson: Lesson, found: Evidence, time: str) -> Judged:
    seen = Observation(
        run=end.run,
        bullet=lesson.id,
        verdict=found.verdict,
        why=found.why,
        session=end.session,
        seq=found.seq,
        version=lesson.version,
    )
    return Judged(seen, found.weight, time)


def _apply_tag(found: Evidence, tag: Tag | None) -> Evidence:
    """Let the Reflector's tag decide where something failed and the record does not show the cause."""
    if tag == "harmful" and found.why in OPEN:
        return found._replace(why="model_judged", verdict="harmful")
    return found


def _judge_run(
    own: Sequence[Chunk],
    edits: Sequence[tuple[FileEdit, Standing]],
    lessons: Mapping[str, Lesson],
    here: Collection[str],
) -> dict[str, Evidence]:
    """Return what a run shows of each lesson that it cited, or that it was told `here`."""
    cited = {name for c in own if isinstance(c.event, RunFinished) for name in c.event.used_bullets}
    uncited = Evidence("not_cited", "neutral", own[-1].seq, NONE)
    found = {name: uncited for name in lessons if name in cited or name in here}
    by_edits: list[str] = []
    tried = tried_commands(own) if not cited.isdisjoint(found) else ()
    instead = replacements(own, tried)
    for name in found:
        if name not in cited:
            continue
        commands = advised_commands(lessons[name].text)
        pieces = [*_judge_commands(tried, instead, commands), *_refused_commands(own, commands)]
        if pieces:
            found[name] = max(pieces, key=lambda each: each.seq)
        elif any(looks_like_a_command(words) for words in commands):
            found[name] = _nothing(own[-1])
        else:
            by_edits.append(name)
    if by_edits:
        shown = _judge_edits([each for _, each in edits], alone=len(by_edits) == 1) or _judge_end(own, edits)
        found |= dict.fromkeys(by_edits, shown)
    return found


def _judge_commands(
    tried: Sequence[Tried], instead: Mapping[int, Tried], commands: Sequence[tuple[str, ...]]
) -> Iterator[Evidence]:
    """Yield what became of each advised command that the run tried. `instead`: `replacements` of the run."""
    for words in commands:
        mine = [each for each in tried if runs_command(each.command, words)]
        passed = [each for each in mine if each.passed]
        if passed:
            yield Evidence("command_passed", "helpful", passed[-1].seq)
        elif mine:
            yield _judge_failed(mine, instead, commands)


def _judge_failed(
    mine: Sequence[Tried], instead: Mapping[int, Tried], commands: Sequence[tuple[str, ...]]
) -> Evidence:
    """Return what failed attempts show of their command: it was replaced, is missing, or only failed."""
    other = next((instead[each.seq] for each in reversed(mine) if each.seq in instead), None)
    if other is not None and not any(runs_command(other.command, words) for words in commands):
        return Evidence("command_replaced", "harmful", other.seq)
    if other is None and mine[-1].is_missing:
        return Evidence("command_missing", "harmful", mine[-1].seq)
    return Evidence("command_failed", "neutral", mine[-1].seq)


def _refused_commands(own: Sequence[Chunk], commands: Sequence[tuple[str, ...]]) -> Iterator[Evidence]:
    """Yield an advised command for each time that the user did not allow it."""
    asked: dict[str, str] = {}
    for chunk in own:
        match chunk.event:
            case ApprovalAsked(kind="command", approval_id=approval, args=args):
                asked[approval] = str(args.get("command", ""))
            case ApprovalGiven(unattended=False) as given if given.decision.startswith("reject"):
                line = asked.get(given.approval_id, "")
                if any(runs_command(line, words) for words in commands):
                    yield Evidence("command_refused", "harmful", chunk.seq)
            case _:
                pass


def _judge_edits(edits: Sequence[Standing], *, alone: bool) -> Evidence | None:
    """Return what the user's decisions on the edits of a run show; None if there are none.

    Edits that were all taken back count against a lesson only if it is the only one to blame."""
    made = [each for each in edits if each.fate != "refused"] or edits
    against = [each for each in made if each.fate in _OF_FATE or each.fate == "partial"]
    if against:
        last = max(against, key=lambda each: each.seq)
        if alone and all(each.fate in _OF_FATE for each in made):
            return Evidence(_OF_FATE[last.fate], "harmful", last.seq)
        return Evidence("unclear", "neutral", last.seq)
    accepted = [each.seq for each in made if each.fate == "accepted"]
    return Evidence("edits_accepted", "helpful", max(accepted)) if accepted else None


def _judge_end(own: Sequence[Chunk], edits: Sequence[tuple[FileEdit, Standing]]) -> Evidence:
    """Return what a completed run shows by its last checks, or without checks by edits that the user kept."""
    nothing, event = _nothing(own[-1]), own[-1].event
    assert isinstance(event, RunFinished)
    if not is_success(event.status) or (event.plan is not None and event.plan.failed):
        return nothing
    state = fold(chunk.event for chunk in own if chunk.run == own[-1].run)
    proofs = [each for each in state.done.proofs if each.kind != "diff"]
    if proofs:
        passed = all(each.ok for each in proofs) and any("no_tests" not in each.remarks for each in proofs)
        return Evidence("checks_passed", "helpful", own[-1].seq, WEAK) if passed else nothing
    return Evidence("edits_kept", "helpful", own[-1].seq, WEAK) if edits else nothing


def _nothing(end: Chunk) -> Evidence:
    """Return the neutral verdict of a run that shows nothing, by its end."""
    assert isinstance(end.event, RunFinished)
    why = _OF_STATUS.get(end.event.status, "nothing_shown")
    return Evidence(why, "neutral", end.seq, NONE)
