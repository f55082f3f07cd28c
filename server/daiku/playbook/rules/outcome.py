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
from daiku.edits.rules.changes.choose import parse_hunks
from daiku.playbook.rules.commands import (
    TriedCommand,
    find_advised_commands,
    find_replacements,
    find_tried_commands,
    looks_like_a_command,
    runs_command,
)
from daiku.run.rules.state.fold import fold

Fate: TypeAlias = Literal["open", "accepted", "partial", "refused", "rejected", "restored"]
"""Decision on an edit.

`refused`: the user did not allow it; `rejected`: rejected in a review; `restored`: an earlier checkpoint was
restored; `partial`: a part of it was refused or rejected.
"""


class EditDecision(NamedTuple):
    """The decision on an edit, and the number of the deciding chunk."""

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
    """All edits of a session, each with the decision on it."""

    files: list[FileEdit]
    decisions: list[EditDecision]
    before: dict[str, tuple[EditDecision, ...]]
    """Decisions at the time of each checkpoint."""

    def add(self, edit: FileEdit, fate: Fate) -> None:
        """Add an edit with its first decision."""
        self.files.append(edit)
        self.decisions.append(EditDecision(fate, edit.seq))

    def save_decisions(self, checkpoint: str | None) -> None:
        """Save all decisions under the id of a checkpoint, unless it has some."""
        if checkpoint is not None:
            self.before.setdefault(checkpoint, tuple(self.decisions))


def collect_edits(chunks: Iterable[Chunk]) -> Edits:
    """Return the edits of a session, from its chunks in order."""
    edits = Edits([], [], {})
    edit_requests: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case CheckpointEvent(checkpoint_id=checkpoint):
                edits.save_decisions(checkpoint)
            case Edit() as event:
                edits.save_decisions(event.checkpoint_id)
                for stat in event.files:
                    edits.add(_read_edit(event.diff, stat.path, chunk.run, chunk.seq), "open")
            case ApprovalAsked(kind="edit", approval_id=approval):
                edit_requests.add(approval)
            case ApprovalGiven(unattended=False) as given if given.approval_id in edit_requests:
                if given.decision.startswith("reject"):
                    edits.add(FileEdit(chunk.run, "", chunk.seq), "refused")
                elif given.hunks is not None:
                    edits.add(FileEdit(chunk.run, "", chunk.seq), "partial")
            case Review() as review:
                edits.save_decisions(review.checkpoint_id)
                _apply_review(edits, review, chunk.seq)
            case Restored(checkpoint_id=checkpoint, redo=redo):
                edits.save_decisions(redo)
                _restore(edits, edits.before.get(checkpoint), chunk.seq)
            case _:
                pass
    return edits


def _restore(edits: Edits, saved: tuple[EditDecision, ...] | None, seq: int) -> None:
    """Restore the decisions of a checkpoint; None is a checkpoint of another session."""
    if saved is None:
        return
    for at, now in enumerate(edits.decisions):
        earlier = saved[at] if at < len(saved) else EditDecision("restored", seq)
        if edits.files[at].path and earlier.fate != now.fate:
            edits.decisions[at] = earlier


def _apply_review(edits: Edits, review: Review, seq: int) -> None:
    """Apply a review to the open edits of its file."""
    at = [n for n, each in enumerate(edits.files) if each.path == review.path]
    at = [n for n in at if edits.decisions[n].fate in ("open", "partial")]
    if _is_of_all([edits.files[n] for n in at], review):
        fate: Fate = "accepted" if review.decision == "accept" else "rejected"
    elif review.decision == "reject":
        fate = "partial"
    else:
        return
    for n in at:
        edits.decisions[n] = EditDecision(fate, seq)


def _is_of_all(files: Sequence[FileEdit], review: Review) -> bool:
    """Return True if a review decides on all that these edits did to its file."""
    if not review.hunks or review.hunks >= sum(each.hunks for each in files):
        return True
    left = frozenset[str]()
    for each in files:
        left = (left - each.removed) | each.added
    return bool(left) and left <= _filter_by_mark((review.lines or "").splitlines(), "+")


def _read_edit(diff: str, path: str, run: str, seq: int) -> FileEdit:
    """Read what a diff does to one file."""
    hunks = [each.body.splitlines()[1:] for each in parse_hunks(diff) if _parse_path(each.head) == path]
    lines = [line for hunk in hunks for line in hunk]
    return FileEdit(run, path, seq, len(hunks), _filter_by_mark(lines, "+"), _filter_by_mark(lines, "-"))


def _filter_by_mark(lines: Iterable[str], mark: str) -> frozenset[str]:
    """Return the lines with this mark, without it; blank ones are left out."""
    return frozenset(line[1:] for line in lines if line.startswith(mark) and line[1:].strip())


_HEADS = ("+++ b/", "rename to ", "--- a/")


def _parse_path(head: str) -> str:
    """Return the path of a file after the change, by the head of its diff."""
    lines = head.splitlines()
    for mark in _HEADS:
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    first = lines[0] if lines else ""
    return first.rpartition(" b/")[2] if first.startswith("diff --git ") else ""


NONE, WEAK, STRONG = 0, 1, 2
"""Weight of evidence: none, the run as a whole, or the advice itself."""
OPEN: frozenset[Why] = frozenset({"command_failed", "unclear"})
"""Reasons of a neutral verdict despite a failure. The Reflector's tag `harmful` overrides it."""
_OF_FATE: Mapping[Fate, Why] = MappingProxyType(
    {"refused": "edits_refused", "rejected": "edits_rejected", "restored": "edits_restored"}
)
_OF_STATUS: Mapping[TerminalStatus, Why] = MappingProxyType(
    {"cancelled": "run_cancelled", "failed": "run_failed", "limit": "run_limited"}
)


class LessonEvidence(NamedTuple):
    """The verdict on a lesson with its reason, and the number of the deciding chunk."""

    why: Why
    verdict: Verdict
    seq: int
    weight: int = STRONG


class LessonVerdict(NamedTuple):
    """Verdict on one lesson: an observation, the weight of its evidence, and the time of the deciding event."""

    observation: Observation
    weight: int
    time: str


class RunOutcome(NamedTuple):
    """The verdicts of a top-level run on its lessons."""

    run: str
    bullets: tuple[LessonVerdict, ...]


def judge_runs(chunks: Iterable[Chunk]) -> tuple[RunOutcome, ...]:
    """Return the outcomes of all ended top-level runs of a session, by its chunks in any order.

    Chunks after the end of a run count too: a later review or undo decides on its edits.
    """
    ordered = sorted({chunk.seq: chunk for chunk in chunks}.values(), key=lambda chunk: chunk.seq)
    tops, edits, tags = top_runs(ordered), collect_edits(ordered), dict[tuple[str, str], Tag]()
    by_top: dict[str, list[Chunk]] = {}
    for chunk in ordered:
        by_top.setdefault(tops[chunk.run], []).append(chunk)
        if isinstance(chunk.event, Reflected):
            tags |= {(tops[chunk.run], each.id): each.tag for each in chunk.event.reflection.tags}
    times = {chunk.seq: chunk.time for chunk in ordered}
    lessons: dict[str, Lesson] = {}
    outcomes: list[RunOutcome] = []
    for top, own in by_top.items():
        own_lessons = {
            each.id: each for c in own if isinstance(c.event, RunStarted) for each in c.event.lessons
        }
        lessons |= own_lessons
        end = next((n for n, c in enumerate(own) if c.run == top and isinstance(c.event, RunFinished)), None)
        if end is None:
            continue
        decisions = zip(edits.files, edits.decisions, strict=True)
        own_edits = tuple(each for each in decisions if tops[each[0].run] == top)
        evidence = _judge_run(own[: end + 1], own_edits, lessons, own_lessons)
        verdicts = (
            _to_verdict(own[end], lessons[name], _apply_tag(each, tags.get((top, name))), times[each.seq])
            for name, each in evidence.items()
        )
        outcomes.append(RunOutcome(top, tuple(verdicts)))
    return tuple(outcomes)


def select_latest_verdicts(outcomes: Iterable[RunOutcome]) -> tuple[LessonVerdict, ...]:
    """Return one verdict on each lesson from several records of a run: a session and its forks.

    The greatest weight wins, then the later time.
    """
    verdicts: dict[str, LessonVerdict] = {}
    for each in (each for outcome in outcomes for each in outcome.bullets):
        best = verdicts.get(each.observation.bullet)
        if best is None or (each.weight, each.time) > (best.weight, best.time):
            verdicts[each.observation.bullet] = each
    return tuple(verdicts.values())


def _to_verdict(end: Chunk, lesson: Lesson, evidence: LessonEvidence, time: str) -> LessonVerdict:
    observation = Observation(
        run=end.run,
        bullet=lesson.id,
        verdict=evidence.verdict,
        why=evidence.why,
        session=end.session,
        seq=evidence.seq,
        version=lesson.version,
    )
    return LessonVerdict(observation, evidence.weight, time)


def _apply_tag(evidence: LessonEvidence, tag: Tag | None) -> LessonEvidence:
    """Let the Reflector's tag decide where something failed and the record does not show the cause."""
    if tag == "harmful" and evidence.why in OPEN:
        return evidence._replace(why="model_judged", verdict="harmful")
    return evidence


def _judge_run(
    own: Sequence[Chunk],
    edits: Sequence[tuple[FileEdit, EditDecision]],
    lessons: Mapping[str, Lesson],
    received: Collection[str],
) -> dict[str, LessonEvidence]:
    """Return the evidence on each lesson that the run cited or `received`."""
    cited = {name for c in own if isinstance(c.event, RunFinished) for name in c.event.used_bullets}
    uncited = LessonEvidence("not_cited", "neutral", own[-1].seq, NONE)
    evidence = {name: uncited for name in lessons if name in cited or name in received}
    by_edits: list[str] = []
    tried = find_tried_commands(own) if not cited.isdisjoint(evidence) else ()
    replaced_by = find_replacements(own, tried)
    for name in evidence:
        if name not in cited:
            continue
        commands = find_advised_commands(lessons[name].text)
        found_evidence = [*_judge_commands(tried, replaced_by, commands), *_judge_refusals(own, commands)]
        if found_evidence:
            evidence[name] = max(found_evidence, key=lambda each: each.seq)
        elif any(looks_like_a_command(words) for words in commands):
            evidence[name] = _build_neutral_evidence(own[-1])
        else:
            by_edits.append(name)
    if by_edits:
        edit_evidence = _judge_edits([each for _, each in edits], alone=len(by_edits) == 1) or _judge_end(
            own, edits
        )
        evidence |= dict.fromkeys(by_edits, edit_evidence)
    return evidence


def _judge_commands(
    tried: Sequence[TriedCommand],
    replaced_by: Mapping[int, TriedCommand],
    commands: Sequence[tuple[str, ...]],
) -> Iterator[LessonEvidence]:
    """Yield the evidence on each advised command that the run tried. `replaced_by`: `replacements`."""
    for words in commands:
        attempts = [each for each in tried if runs_command(each.command, words)]
        passed = [each for each in attempts if each.passed]
        if passed:
            yield LessonEvidence("command_passed", "helpful", passed[-1].seq)
        elif attempts:
            yield _judge_failed(attempts, replaced_by, commands)


def _judge_failed(
    attempts: Sequence[TriedCommand],
    replaced_by: Mapping[int, TriedCommand],
    commands: Sequence[tuple[str, ...]],
) -> LessonEvidence:
    """Return the evidence of failed attempts: the command was replaced, is missing, or only failed."""
    replacement = next(
        (replaced_by[each.seq] for each in reversed(attempts) if each.seq in replaced_by), None
    )
    if replacement is not None and not any(runs_command(replacement.command, words) for words in commands):
        return LessonEvidence("command_replaced", "harmful", replacement.seq)
    if replacement is None and attempts[-1].is_missing:
        return LessonEvidence("command_missing", "harmful", attempts[-1].seq)
    return LessonEvidence("command_failed", "neutral", attempts[-1].seq)


def _judge_refusals(own: Sequence[Chunk], commands: Sequence[tuple[str, ...]]) -> Iterator[LessonEvidence]:
    """Yield evidence for each time that the user did not allow an advised command."""
    requests: dict[str, str] = {}
    for chunk in own:
        match chunk.event:
            case ApprovalAsked(kind="command", approval_id=approval, args=args):
                requests[approval] = str(args.get("command", ""))
            case ApprovalGiven(unattended=False) as given if given.decision.startswith("reject"):
                line = requests.get(given.approval_id, "")
                if any(runs_command(line, words) for words in commands):
                    yield LessonEvidence("command_refused", "harmful", chunk.seq)
            case _:
                pass


def _judge_edits(edits: Sequence[EditDecision], *, alone: bool) -> LessonEvidence | None:
    """Return the evidence of the user's decisions on the edits of a run; None if there are none.

    Edits that were all rejected count against a lesson only if it is the only one to blame.
    """
    applied = [each for each in edits if each.fate != "refused"] or edits
    against = [each for each in applied if each.fate in _OF_FATE or each.fate == "partial"]
    if against:
        last = max(against, key=lambda each: each.seq)
        if alone and all(each.fate in _OF_FATE for each in applied):
            return LessonEvidence(_OF_FATE[last.fate], "harmful", last.seq)
        return LessonEvidence("unclear", "neutral", last.seq)
    accepted = [each.seq for each in applied if each.fate == "accepted"]
    return LessonEvidence("edits_accepted", "helpful", max(accepted)) if accepted else None


def _judge_end(own: Sequence[Chunk], edits: Sequence[tuple[FileEdit, EditDecision]]) -> LessonEvidence:
    """Return the evidence of a completed run: its last checks, else the edits that were kept."""
    neutral, event = _build_neutral_evidence(own[-1]), own[-1].event
    assert isinstance(event, RunFinished)
    if not is_success(event.status) or (event.plan is not None and event.plan.failed):
        return neutral
    state = fold(chunk.event for chunk in own if chunk.run == own[-1].run)
    proofs = [each for each in state.done.proofs if each.kind != "diff"]
    if proofs:
        passed = all(each.ok for each in proofs) and any("no_tests" not in each.remarks for each in proofs)
        return LessonEvidence("checks_passed", "helpful", own[-1].seq, WEAK) if passed else neutral
    return LessonEvidence("edits_kept", "helpful", own[-1].seq, WEAK) if edits else neutral


def _build_neutral_evidence(end: Chunk) -> LessonEvidence:
    """Return the neutral evidence of a run that shows nothing."""
    assert isinstance(end.event, RunFinished)
    why = _OF_STATUS.get(end.event.status, "nothing_shown")
    return LessonEvidence(why, "neutral", end.seq, NONE)
