"""What a run showed of the bullets that it was told: helpful, harmful or neither, by what is on record of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from daiku.core.playbook.evidence.advice import Advice, advice_of, looks_like_a_command, names
from daiku.core.playbook.evidence.hunks import TAKEN_BACK, Fates, Hunk, Standing, fates_of
from daiku.core.playbook.evidence.judged import Tags, is_held_against, tags_in
from daiku.core.playbook.evidence.said import Said, judgement, said_in, tops_of
from daiku.core.playbook.evidence.tried import Tried, follows, replaced, tried_of
from daiku.core.proof.evidence import unproven_checks
from daiku.core.state.fold import fold
from daiku.core.state.repetition import repetition
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    HandoffStart,
    MessageEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
)
from daiku.domain.held import Lesson
from daiku.domain.playbook import Verdict, Why
from daiku.domain.runs import TerminalStatus, is_success

Shown: TypeAlias = Literal["acceptance_met", "checks_passed", "edits_kept"]
WEAK, STRONG, SAID = 1, 2, 3
"""The weight of evidence: the whole run went well; what became of the very thing that was advised; a person's own word. Of
the same weight the later one counts."""


class Piece(NamedTuple):
    """One piece of evidence about a bullet; the greatest decides."""

    weight: int
    seq: int
    why: Why
    verdict: Verdict


class Judged(NamedTuple):
    """What a run showed of one bullet. `time`: when what decided it happened."""

    bullet: str
    verdict: Verdict
    why: Why
    weight: int
    session: str
    seq: int
    time: str
    version: int = 0
    """That of the text that the run was told."""


class Outcome(NamedTuple):
    """What a run at the top showed: to work as a whole, and of each bullet that it was told."""

    run: str
    shown: Shown | None
    bullets: tuple[Judged, ...]


def outcomes_of(chunks: Iterable[Chunk]) -> tuple[Outcome, ...]:
    """The outcomes of all ended runs at the top of a session, by all its chunks, also those that came after them; in
    whatever order they are given."""
    whole = sorted({chunk.seq: chunk for chunk in chunks}.values(), key=lambda chunk: chunk.seq)
    tops = tops_of(whole)
    times = {chunk.seq: chunk.time for chunk in whole}
    session = _Session(tops, fates_of(whole), said_in(whole, tops), times, tags_in(whole, tops))
    told: dict[str, Lesson] = {}
    found: list[Outcome] = []
    for top, own in _by_top(whole, tops).items():
        told |= {each.id: each for c in own if isinstance(c.event, RunStarted) for each in c.event.lessons}
        at = next((n for n, c in enumerate(own) if c.run == top and isinstance(c.event, RunFinished)), None)
        if at is not None:
            found.append(_outcome(session, own[: at + 1], tuple(told.values())))
    return tuple(found)


def _by_top(chunks: Sequence[Chunk], tops: Mapping[str, str]) -> dict[str, list[Chunk]]:
    found: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        found.setdefault(tops[chunk.run], []).append(chunk)
    return found


def _outcome(session: _Session, own: Sequence[Chunk], told: Sequence[Lesson]) -> Outcome:
    """The outcome of the run that these chunks are of, to its end, by what it was told and runs before it."""
    run, end = own[-1].run, own[-1].seq
    cited = frozenset(name for c in own if isinstance(c.event, RunFinished) for name in c.event.used_bullets)
    here = {each.id for c in own if isinstance(c.event, RunStarted) for each in c.event.lessons}
    record, pieces = None, dict[str, list[Piece]]()
    if named := tuple(each for each in told if each.id in cited):
        record = _record(own, session.fates.of(run, session.tops))
        pieces = _pieces(record, named)
    found: list[Judged] = []
    for each in told:
        mine = [*pieces.get(each.id, ()), *_said(session.said, run, each.id)]
        if not mine and each.id not in cited and each.id not in here:
            continue
        nothing = record.nothing if record is not None and each.id in cited else "not_cited"
        last = max(mine, default=Piece(0, end, nothing, "neutral"))
        if is_held_against(last.why, session.tags.get((run, each.id))):
            last = last._replace(why="model_judged", verdict="harmful")
        place = own[0].session, last.seq, session.times[last.seq]
        found.append(Judged(each.id, last.verdict, last.why, last.weight, *place, each.version))
    return Outcome(run, record.shown if record is not None else None, tuple(found))


def latest(outcomes: Iterable[Outcome]) -> tuple[Judged, ...]:
    """What several records of one run show of each bullet: a conversation and its copies, which go on apart. What
    weighs most holds, and of that the last."""
    found: dict[str, Judged] = {}
    for each in (each for outcome in outcomes for each in outcome.bullets):
        old = found.get(each.bullet)
        if old is None or (each.weight, each.time) > (old.weight, old.time):
            found[each.bullet] = each
    return tuple(found.values())


class _Session(NamedTuple):
    """What is looked at once for all runs of a session: the run at the top of each, what became of its hunks, what persons
    said, the time of each chunk, what a model said of bullets."""

    tops: Mapping[str, str]
    fates: Fates
    said: Said
    times: Mapping[int, str]
    tags: Tags


class _Record(NamedTuple):
    """What is on record of a run that named a bullet: its chunks with those of its nested runs, its commands, its hunks,
    what it showed as a whole, and why a bullet is neutral of which nothing is shown."""

    own: Sequence[Chunk]
    tried: Sequence[Tried]
    fates: Sequence[tuple[Hunk, Standing]]
    shown: Shown | None
    nothing: Why

    @property
    def end(self) -> int:
        return self.own[-1].seq


def _record(own: Sequence[Chunk], fates: Sequence[tuple[Hunk, Standing]]) -> _Record:
    event = own[-1].event
    assert isinstance(event, RunFinished)
    state = fold(c.event for c in own if c.run == own[-1].run)
    shown = _shown(event, state, fates) if is_success(event.status) else None
    return _Record(own, tried_of(own), fates, shown, _nothing(event, state))


_NOTHING: Mapping[TerminalStatus, Why] = MappingProxyType(
    {"cancelled": "run_cancelled", "failed": "run_failed", "limit": "run_limited"}
)


def _nothing(event: RunFinished, state: State) -> Why:
    most, found = state.request.limits.max_repeats, repetition(state.health.trail)
    circles = event.status == "limit" and most and found is not None and found.repeats >= most
    return "run_looped" if circles else _NOTHING.get(event.status, "nothing_shown")


def _shown(event: RunFinished, state: State, fates: Sequence[tuple[Hunk, Standing]]) -> Shown | None:
    """What a completed run showed as a whole: its plan's checks passed, else what it checked last, else that edits of
    it stand. Nothing where all its edits were taken back."""
    made = [standing.fate for _, standing in fates if standing.fate != "refused"]
    if (event.plan is not None and event.plan.failed) or (made and TAKEN_BACK.issuperset(made)):
        return None
    plan = next((each for each in state.plans.all if event.plan and each.plan_id == event.plan.plan_id), None)
    checks = [check for step in plan.steps for check in step.acceptance] if plan is not None else []
    if checks and plan is not None:
        met = plan.status == "completed" or not unproven_checks(checks, state.done)
        return "acceptance_met" if met else None
    proofs = [each for each in state.done.proofs if each.kind != "diff"]
    if proofs:
        sound = all(each.ok for each in proofs) and any("no_tests" not in each.remarks for each in proofs)
        return "checks_passed" if sound else None
    return "edits_kept" if made else None


# ---- evidence


def _pieces(record: _Record, cited: Sequence[Lesson]) -> dict[str, list[Piece]]:
    """The evidence about each bullet that was named, persons' words apart."""
    advice = {each.id: advice_of(each.text) for each in cited}
    led = {each.id: _led_to(record, each.id, advice[each.id]) for each in cited}
    found = {each.id: _by_commands(record, advice[each.id], led[each.id].calls) for each in cited}
    for name in found:
        found[name] += _by_hunks([standing for _, standing in led[name].hunks])
    loose = [
        name
        for name in found
        if not led[name].hunks and not found[name] and not _names_commands(advice[name])
    ]
    claimed = {hunk for each in led.values() for hunk, _ in each.hunks}
    rest = [each for hunk, each in record.fates if hunk not in claimed and each.fate != "refused"]
    for name in loose:
        found[name] += _by_hunks(rest) if len(loose) == 1 else _unclear(_by_hunks(rest))
    for name, pieces in found.items():
        idle = _names_commands(advice[name]) and not pieces
        mine = rest if name in loose else [standing for _, standing in led[name].hunks]
        stands = record.shown != "edits_kept" or (mine and not any(each.fate in TAKEN_BACK for each in mine))
        if record.shown is not None and stands and not idle:
            pieces.append(Piece(WEAK, record.end, record.shown, "helpful"))
    return found


def _names_commands(advice: Advice) -> bool:
    """Whether it is advice to run something: where nothing of it was run, nothing was shown."""
    return any(looks_like_a_command(words) for words in advice.commands)


class _Led(NamedTuple):
    """The calls of the replies that named a bullet, and the hunks that it led to."""

    calls: frozenset[str]
    hunks: tuple[tuple[Hunk, Standing], ...]


def _led_to(record: _Record, bullet: str, advice: Advice) -> _Led:
    """The hunks that hold the code that a bullet gives, or are in the places that it names; else those of the calls
    that a reply made which named it, those of the runs that such a call handed work to included."""
    calls: set[str] = set()
    runs: set[str] = set()
    for chunk in record.own:
        match chunk.event:
            case MessageEvent(role="assistant") as said if said.calls:
                whole = names(f"{said.text}\n{said.thinking}", bullet)
                calls |= {call.id for call in said.calls if whole or names(call.reasoning or "", bullet)}
            case ToolCallEvent(reasoning=str(why)) as call if names(why, bullet):
                calls.add(call.id)
            case HandoffStart() as handed if handed.call_id in calls:
                runs.add(handed.run)
            case _:
                if chunk.parent in runs:
                    runs.add(chunk.run)
    by_text = tuple(each for each in record.fates if _holds(each[0], advice))
    made = calls if not _names_commands(advice) else set[str]()
    by_reply = tuple(each for each in record.fates if each[0].call_id in made or each[0].run in runs)
    return _Led(frozenset(calls), by_text or by_reply)


def _holds(hunk: Hunk, advice: Advice) -> bool:
    code = [" ".join(line.split()) for line in hunk.added]
    if any(piece in line for piece in advice.code for line in code):
        return True
    return any(
        hunk.path == place or (place.endswith("/") and hunk.path.startswith(place)) for place in advice.places
    )


def _by_commands(record: _Record, advice: Advice, calls: frozenset[str]) -> list[Piece]:
    """A command that it names passed, or failed, and another passed in its place, or a person refused it."""
    found: list[Piece] = []
    for words in advice.commands:
        mine = [each for each in record.tried if follows(each.command, words)]
        passed = [each for each in mine if each.ok]
        if passed:
            found.append(Piece(STRONG, passed[-1].seq, "command_passed", "helpful"))
        elif mine:
            found.append(_failed(mine, record, advice))
    return [*found, *_refused(record, advice, calls)]


def _failed(mine: Sequence[Tried], record: _Record, advice: Advice) -> Piece:
    instead = replaced(record.own, record.tried)
    other = next((instead[each.seq] for each in reversed(mine) if each.seq in instead), None)
    if other is not None and not any(follows(other.command, words) for words in advice.commands):
        return Piece(STRONG, other.seq, "command_replaced", "harmful")
    if other is None and mine[-1].cannot_run:
        return Piece(STRONG, mine[-1].seq, "command_missing", "harmful")
    return Piece(STRONG, mine[-1].seq, "command_failed", "neutral")


def _refused(record: _Record, advice: Advice, calls: frozenset[str]) -> list[Piece]:
    """A person did not allow a command that it names, or, where it names none, one of a reply that named it."""
    asked: dict[str, ApprovalAsked] = {}
    found: list[Piece] = []
    for chunk in record.own:
        match chunk.event:
            case ApprovalAsked(kind="command") as question:
                asked[question.approval_id] = question
            case ApprovalGiven(unattended=False) as given if given.decision.startswith("reject"):
                question = asked.get(given.approval_id)
                if question is None:
                    continue
                command = str(question.args.get("command", ""))
                named = any(follows(command, words) for words in advice.commands)
                if named or (question.call_id in calls and not advice.commands and not advice.warned):
                    found.append(Piece(STRONG, chunk.seq, "command_refused", "harmful"))
            case _:
                pass
    return found


_OF_FATE: Mapping[str, Why] = MappingProxyType(
    {"refused": "edits_refused", "rejected": "edits_rejected", "restored": "edits_restored"}
)


def _by_hunks(led: Sequence[Standing]) -> list[Piece]:
    """What became of the hunks that a bullet led to: all of them were taken back, some, or none."""
    back = [each for each in led if each.fate in TAKEN_BACK]
    if back:
        last = max(back, key=lambda each: each.seq)
        if len(back) == len(led):
            return [Piece(STRONG, last.seq, _OF_FATE[last.fate], "harmful")]
        return [Piece(STRONG, last.seq, "unclear", "neutral")]
    doubtful = [each.seq for each in led if each.fate == "doubtful"]
    if doubtful:
        return [Piece(STRONG, max(doubtful), "unclear", "neutral")]
    accepted = [each.seq for each in led if each.fate == "accepted"]
    return [Piece(STRONG, max(accepted), "edits_accepted", "helpful")] if accepted else []


def _unclear(pieces: Sequence[Piece]) -> list[Piece]:
    """What harmed one of several bullets is held against none of them."""
    return [
        piece._replace(verdict="neutral", why="unclear") if piece.verdict == "harmful" else piece
        for piece in pieces
    ]


def _said(said: Said, run: str, bullet: str) -> list[Piece]:
    """What persons said of a bullet by its id."""
    found: list[Piece] = []
    for word in said.about(bullet, run):
        match judgement(word.text, bullet):
            case "against":
                found.append(Piece(SAID, word.seq, "objected", "harmful"))
            case "for":
                found.append(Piece(SAID, word.seq, "praised", "helpful"))
            case None:
                pass
    return found
