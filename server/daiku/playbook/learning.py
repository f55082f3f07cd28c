"""Learning from ended runs: observations of lessons, and new lessons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Literal, Protocol

from daiku.dataclass import dataclass, replace
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings
from daiku.domain.errors import UsageError
from daiku.domain.events import ApprovalAsked, ApprovalGiven, HandoffEnd, RunStarted, ToolResponse
from daiku.domain.held import Bullet, Reflected
from daiku.domain.playbook import Delta, Observation
from daiku.guard.rules.commands.judge import CommandRules, judge
from daiku.guard.rules.redact import MARK
from daiku.memory.rules.terms import split_terms
from daiku.playbook.repository import PlaybookStores
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.rules.curate import curate, find_confirmed, merge_proposals, refine
from daiku.playbook.rules.outcome import RunOutcome, judge_runs, select_latest_verdicts
from daiku.playbook.rules.proposals import (
    Proposal,
    find_code_spans,
    find_insights,
    find_merges_and_removals,
    redact_proposal,
)
from daiku.playbook.rules.reflect import reflect
from daiku.playbook.rules.similar import are_near_duplicates
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.trace.fork import RunCopies, RunLocation, copies_in, copies_of

Allows = Callable[[str], bool]
"""Predicate of a command line: True if the user's approval is not needed to run it."""
LearnMode = Literal["off", "review", "auto"]
FEW = 200
"""Number of bullets up to which all are compared; above it only the changed ones are compared with all."""
WELL_FOUNDED = 2
"""Excess of confirming runs at which one run cannot change a bullet without review."""
_USER_REASONS = frozenset({"rejected", "corrected"})
"""Reasons of lessons in the user's own words. They override earlier observations."""
_UNDONE_REASONS = frozenset({"edits_refused", "edits_rejected", "edits_restored"})
"""Reasons of verdicts on edits that the user rejected or undid."""
_USER_ORIGINS = frozenset({"person", "import"})
"""Origins of bullets that rules do not change without review."""


def learn_from(
    store: PlaybookStore,
    chunks: Sequence[Chunk],
    *,
    learn: LearnMode,
    redact: Callable[[str], str],
    allows: Allows = bool,
    insights: Iterable[Proposal] = (),
    outside: bool = False,
) -> tuple[Delta, ...]:
    """Learn from the runs of a session and return the changes that were proposed or applied.

    `chunks` are all of the session as far as it is known. Each place in a session teaches a lesson once: a
    second call changes nothing. Lessons that the user rejected or undid are not proposed again. `allows`
    decides which commands need no review. `insights` are a model's and always need it. `outside`: the model
    read text that is not recorded, such as the tool descriptions of MCP servers.
    """
    if learn == "off" or not (lessons := (*reflect(chunks), *insights)):
        return ()
    earlier = store.deltas()
    learned = {(each.why, place) for each in earlier for place in each.evidence}
    alike = are_near_duplicates
    redacted_lessons = [redact_proposal(each, redact) for each in lessons if each.evidence]
    proposals = merge_proposals(add_misleading_lessons(redacted_lessons, chunks), alike)
    new = [each for each in proposals if (each.why, each.evidence[-1]) not in learned]
    before, decided = store.load(), [each for each in earlier if each.status != "applied"]
    confirmed_changes = find_confirmed(new, decided, alike)
    new_changes = curate(new, before, alike, decided=decided)
    if not confirmed_changes and not new_changes:
        return ()
    needs_no_review = _review_filter(learn, allows)
    if outside or is_tainted(chunks):
        new_changes = tuple(each.model_copy(update={"doubts": ("tainted",)}) for each in new_changes)
        confirmed_changes = []
    changes = [_apply_or_propose(store, each, needs_no_review) for each in new_changes]
    changes += _accept(store, confirmed_changes, needs_no_review)
    is_small = len(before.bullets) <= FEW
    changed = None if is_small else {each.bullet_id for each in changes if each.status == "applied"}
    return (*changes, *merge_duplicates(store, learn=learn, changed=changed)) if changes else ()


def _review_filter(learn: LearnMode, allows: Allows) -> Callable[[Delta], bool]:
    """Return the predicate of changes that are applied without review."""
    return lambda change: learn == "auto" and not needs_review(change, allows)


def add_misleading_lessons(proposals: Sequence[Proposal], chunks: Sequence[Chunk]) -> list[Proposal]:
    """Return the proposals, each correction with the lesson that it updates.

    A correction updates the only lesson whose edits the user undid in its run, if both share a word of more
    than three letters. As a second lesson it would contradict that one.
    """
    if not any(each.why in _USER_REASONS for each in proposals):
        return list(proposals)
    starts = (chunk.event for chunk in chunks if isinstance(chunk.event, RunStarted))
    words = {each.id: set(split_terms(each.text)) for start in starts for each in start.lessons}
    misled: dict[str, str] = {}
    for outcome in judge_runs(chunks) if words else ():
        undone_lessons = [
            each.observation.bullet for each in outcome.bullets if each.observation.why in _UNDONE_REASONS
        ]
        if len(undone_lessons) == 1:
            misled[outcome.run] = undone_lessons[0]
    result: list[Proposal] = []
    for each in proposals:
        lesson = misled.get(each.evidence[-1].run_id, "") if each.why in _USER_REASONS else ""
        is_about = any(len(word) > 3 for word in words.get(lesson, set()) & set(split_terms(each.content)))
        result.append(replace(each, about=lesson) if is_about else each)
    return result


def propose_merges_and_removals(
    store: PlaybookStore, chunks: Sequence[Chunk], redact: Callable[[str], str]
) -> tuple[Delta, ...]:
    """Propose, once, the merges and removals that a model requested."""
    if not any(isinstance(each.event, Reflected) for each in chunks):
        return ()
    requested = find_merges_and_removals(chunks, store.load(), store.deltas())
    doubts = ("tainted",) if requested and is_tainted(chunks) else ()
    return tuple(
        store.propose(each.model_copy(update={"content": redact(each.content), "doubts": doubts}))
        for each in requested
    )


def merge_duplicates(
    store: PlaybookStore, *, learn: LearnMode, changed: Collection[str] | None = None
) -> tuple[Delta, ...]:
    """Merge the bullets of a playbook that say the same, or propose it, once.

    `changed`: compare only these bullets with all.
    """
    merges = refine(store.load(), are_near_duplicates, changed=changed)
    if not merges:
        return ()
    decided = {(each.bullet_id, each.bullet_ids) for each in store.deltas("proposed", "rejected", "undone")}
    needs_no_review = _review_filter(learn, bool)
    return tuple(
        _apply_or_propose(store, each, needs_no_review)
        for each in merges
        if (each.bullet_id, each.bullet_ids) not in decided
    )


def _apply_or_propose(store: PlaybookStore, delta: Delta, needs_no_review: Callable[[Delta], bool]) -> Delta:
    """Apply a change that needs no review, and propose any other.

    Bullets that the user wrote are never changed without review. Counts of a run are always applied.
    """
    is_automatic = needs_no_review(delta) and not _is_well_founded(store, delta)
    if delta.type == "tag" or (is_automatic and not changes_user_text(store, delta)):
        applied = store.apply(delta)
        if not isinstance(applied, ChangeRefusal):
            return applied
    return store.propose(delta)


def _accept(
    store: PlaybookStore, pending: Sequence[Delta], needs_no_review: Callable[[Delta], bool]
) -> list[Delta]:
    """Accept the pending changes that another run confirmed and that need no review."""
    automatic = [each for each in pending if needs_no_review(each)]
    accepted = [store.accept(each.id) for each in automatic if not changes_user_text(store, each)]
    return [each for each in accepted if not isinstance(each, ChangeRefusal)]


def _is_well_founded(store: PlaybookStore, delta: Delta) -> bool:
    """Return True if `delta` replaces a text that several runs confirmed."""
    if delta.type != "update" or delta.why in _USER_REASONS:
        return False
    bullet = store.bullets((delta.bullet_id,)).get(delta.bullet_id)
    return bullet is not None and bullet.helpful - bullet.harmful >= WELL_FOUNDED


def changes_user_text(store: PlaybookStore, delta: Delta) -> bool:
    """Return True if the user wrote, imported, or edited a bullet that `delta` changes."""
    touched = [name for name in dict.fromkeys((delta.bullet_id, *delta.bullet_ids)) if name]
    if any(each.origin in _USER_ORIGINS for each in store.bullets(touched).values()):
        return True
    return any(
        each.bullet_id == name and each.status == "applied" and each.origin in _USER_ORIGINS
        for name in touched
        for each in store.history(name)
    )


class ReadsSessions(Protocol):
    """Store of recorded sessions. Methods raise UsageError for unknown ids."""

    def chunks(self, session: str) -> list[Chunk]: ...

    def session_of_run(self, run: str) -> str: ...


def observe_session(
    playbooks: Sequence[PlaybookStore], sessions: ReadsSessions, database: Database, chunks: Sequence[Chunk]
) -> tuple[Observation, ...]:
    """Save what the ended runs of a session, and copies of them in other sessions, show of their lessons.

    Each run has one observation of a lesson, from its latest record. Raises DaikuError.
    """
    observations = list_observations(sessions, lambda run: copies_of(database, run), chunks)
    if observations:
        for playbook in playbooks:
            playbook.observe(observations)
    return observations


def list_observations(
    sessions: ReadsSessions, copies: Callable[[str], RunCopies], chunks: Sequence[Chunk]
) -> tuple[Observation, ...]:
    """Return the observations of a session's runs, each under the original run."""
    session = chunks[0].session

    @cache
    def outcomes(name: str) -> Mapping[str, RunOutcome]:
        try:
            return _list_outcomes(chunks if name == session else sessions.chunks(name))
        except UsageError:  # deleted
            return {}

    observations: list[Observation] = []
    for run in outcomes(session):
        records = copies(run)
        places = {RunLocation(session, run), *records.copies}
        with suppress(UsageError):
            places.add(RunLocation(sessions.session_of_run(records.original), records.original))
        ordered = sorted(
            places, key=lambda place: (place.run != records.original, place)
        )  # the first of equal ones wins
        run_outcomes = [each for place in ordered if (each := outcomes(place.session).get(place.run))]
        observations += [
            each.observation.model_copy(update={"run": records.original})
            for each in select_latest_verdicts(run_outcomes)
        ]
    return tuple(observations)


def _list_outcomes(chunks: Sequence[Chunk]) -> dict[str, RunOutcome]:
    """Return the outcomes of a session's runs; none if no run received a lesson."""
    has_lessons = any(isinstance(c.event, RunStarted) and c.event.lessons for c in chunks)
    return {each.run: each for each in judge_runs(chunks)} if has_lessons else {}


@dataclass(frozen=True, slots=True)
class Learning:
    """Learns from the runs of a trusted workspace."""

    learn: Literal["review", "auto", "off"]
    sessions: ReadsSessions
    database: Database
    playbooks: PlaybookStores
    redact: Callable[[str], str]
    outside: Callable[[], bool] = bool
    """Return True if models read text that is not recorded, such as tool descriptions of MCP servers."""
    allows: Allows = bool
    """Decides which commands lessons may recommend without review."""

    def learn_from_session(self, chunks: Sequence[Chunk]) -> tuple[Bullet, ...]:
        """Learn from all that a session contains; return the news. A second call changes nothing.

        Raises DaikuError.
        """
        repository, user = self.playbooks.repository, self.playbooks.user
        stores = (user,) if repository is None else (repository, user)
        observe_session(stores, self.sessions, self.database, chunks)
        if repository is None:
            return ()
        originals = _as_originals(chunks, copies_in(self.database, chunks[0].session), self.sessions)
        changes = learn_from(
            repository,
            originals,
            learn=self.learn,
            redact=self.redact,
            insights=find_insights(originals),
            outside=self.outside(),
            allows=self.allows,
        )
        changes += propose_merges_and_removals(repository, originals, self.redact)
        return tuple(to_event(each) for each in changes if each.type != "tag")  # a count is no news


def to_event(change: Delta) -> Bullet:
    """Return the event for a change of the playbook in the session that it was learned from."""
    is_pending = change.status == "proposed"
    return Bullet(
        bullet_id=change.bullet_id or change.id,
        change="proposed" if is_pending else change.type,
        content=change.content,
        why=change.why,
    )


def _as_originals(
    chunks: Sequence[Chunk], copies: Mapping[str, str], sessions: ReadsSessions
) -> Sequence[Chunk]:
    """Return the chunks, with those of copied runs under their originals, whose evidence is known."""
    if not copies:
        return chunks
    places: dict[str, tuple[str, str]] = {}
    for run, original in copies.items():
        with suppress(UsageError):  # deleted
            places[run] = sessions.session_of_run(original), original
    mapped: list[Chunk] = []
    for chunk in chunks:
        session, run = places.get(chunk.run, (chunk.session, chunk.run))
        mapped.append(chunk._replace(session=session, run=run))
    return mapped


_ABOUT_COMMANDS = frozenset({"command_replaced", "command_before", "passed_twice"})
"""Reasons of lessons whose text has only commands, between backquotes, and fixed words."""


def needs_review(change: Delta, allows: Allows) -> bool:
    """Return True if a change needs review even with `learn = "auto"`.

    Only merges of duplicates, which add no text, and lessons about commands need none. The agent must have
    run those commands itself, and must be allowed to run them without approval, the failed ones too.
    `tainted` changes and those with a removed secret always need review.
    """
    if change.origin != "rule" or change.doubts or MARK in change.content:
        return True
    if change.type == "merge":
        return False
    commands = find_code_spans(change.content) if change.why in _ABOUT_COMMANDS else ()
    return not commands or not all(map(allows, commands))


def allows_unasked(approvals: ApprovalSettings, command: str) -> bool:
    """Return True if a command only reads, or the settings allow it."""
    rules = CommandRules(resolve=str, allow=approvals.commands_allow, deny=approvals.commands_deny)
    return judge(command, rules).answer == "allow"


def is_tainted(chunks: Iterable[Chunk]) -> bool:
    """Return True if a run read text from outside: pages, MCP servers, issues, or pictures.

    An approved start of an MCP server counts: it describes its tools to the model.
    """
    mcp_approvals: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(kind="mcp", from_server=True, approval_id=approval):
                mcp_approvals.add(approval)
            case ApprovalGiven(approval_id=approval, decision="allow_once" | "allow_always") if (
                approval in mcp_approvals
            ):
                return True
            case RunStarted(tainted=True) | HandoffEnd(tainted=True) | ToolResponse(untrusted=True):
                return True
            case ToolResponse(images=images) | RunStarted(images=images) if images:
                return True
            case _:
                pass
    return False
