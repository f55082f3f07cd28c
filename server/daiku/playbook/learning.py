"""Learning from runs, after they have ended and after what came later: what they showed of bullets, and new lessons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Literal, Protocol

from daiku.dataclass import dataclass, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import UsageError
from daiku.domain.events import RunStarted
from daiku.domain.held import Bullet, Reflected
from daiku.domain.playbook import Delta, Observation
from daiku.memory.rules.terms import terms
from daiku.playbook.repository import Playbooks
from daiku.playbook.rules.evidence.outcome import Outcome, latest, outcomes_of
from daiku.playbook.rules.insights.proposals import insights_of, merges_and_removals
from daiku.playbook.rules.lessons.automatic import Allows, is_tainted, needs_review
from daiku.playbook.rules.lessons.curate import confirmed, curate, distinct, refine
from daiku.playbook.rules.lessons.proposal import Proposal, redacted
from daiku.playbook.rules.lessons.reflect import reflect
from daiku.playbook.rules.lessons.similar import near_duplicates
from daiku.playbook.rules.refused import ChangeRefusal
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.trace.copies import Copies, Place, copies_in, copies_of

LearnMode = Literal["off", "review", "auto"]
FEW = 200
"""Bullets that are all held against one another when something was learnt; of more, only what was changed against all."""
WELL_FOUNDED = 2
"""So many runs more for a bullet than against it: a second run has to show that another text is right."""
_PERSON_SAID = frozenset({"rejected", "corrected"})
"""What taught a lesson in a person's own words. Those are no accident: they hold against what runs showed before."""
_TAKEN_BACK = frozenset({"edits_refused", "edits_rejected", "edits_restored"})
_PERSONS = frozenset({"person", "import"})
"""Whose words a rule does not change by itself."""


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

    `chunks` are all of the session as far as it is known. Each place in a session teaches a lesson once: called again, this
    changes nothing. What a person rejected or took back is not proposed again. `allows` decides which commands need no
    review. `insights` are a model's and always wait. `outside`: the model read text that is not on record, such as the tool
    descriptions of MCP servers."""
    if learn == "off" or not (taught := (*reflect(chunks), *insights)):
        return ()
    changes = store.deltas()
    known = {(each.why, place) for each in changes for place in each.evidence}
    alike = near_duplicates
    clean = [redacted(each, redact) for each in taught if each.evidence]
    proposals = distinct(about_what_misled(clean, chunks), alike)
    new = [each for each in proposals if (each.why, each.evidence[-1]) not in known]
    before, decided = store.load(), [each for each in changes if each.status != "applied"]
    waiting, wanted = confirmed(new, decided, alike), curate(new, before, alike, decided=decided)
    if not waiting and not wanted:
        return ()
    applies = _applies(learn, allows)
    if outside or is_tainted(chunks):
        wanted, waiting = tuple(each.model_copy(update={"doubts": ("tainted",)}) for each in wanted), []
    made = [_apply_or_propose(store, each, applies) for each in wanted]
    made += _accept(store, waiting, applies)
    few = len(before.bullets) <= FEW
    changed = None if few else {each.bullet_id for each in made if each.status == "applied"}
    return (*made, *merge_duplicates(store, learn=learn, changed=changed)) if made else ()


def _applies(learn: LearnMode, allows: Allows) -> Callable[[Delta], bool]:
    """Return what decides whether a change is applied without review."""
    return lambda change: learn == "auto" and not needs_review(change, allows)


def about_what_misled(proposals: Sequence[Proposal], chunks: Sequence[Chunk]) -> list[Proposal]:
    """Return the proposals, with the lesson that each correction is to change.

    A correction changes the only lesson whose edits the user took back in its run, if both share a word of more than
    three letters. As a second lesson it would contradict that one."""
    if not any(each.why in _PERSON_SAID for each in proposals):
        return list(proposals)
    starts = (chunk.event for chunk in chunks if isinstance(chunk.event, RunStarted))
    words = {each.id: set(terms(each.text)) for start in starts for each in start.lessons}
    misled: dict[str, str] = {}
    for outcome in outcomes_of(chunks) if words else ():
        taken_back = [each.seen.bullet for each in outcome.bullets if each.seen.why in _TAKEN_BACK]
        if len(taken_back) == 1:
            misled[outcome.run] = taken_back[0]
    result: list[Proposal] = []
    for each in proposals:
        lesson = misled.get(each.evidence[-1].run_id, "") if each.why in _PERSON_SAID else ""
        is_about = any(len(word) > 3 for word in words.get(lesson, set()) & set(terms(each.content)))
        result.append(replace(each, about=lesson) if is_about else each)
    return result


def propose_asked(
    store: PlaybookStore, chunks: Sequence[Chunk], redact: Callable[[str], str]
) -> tuple[Delta, ...]:
    """Propose, once, the merges and removals that a model asked for: they wait for a person."""
    if not any(isinstance(each.event, Reflected) for each in chunks):
        return ()
    asked = merges_and_removals(chunks, store.load(), store.deltas())
    doubts = ("tainted",) if asked and is_tainted(chunks) else ()
    return tuple(
        store.propose(each.model_copy(update={"content": redact(each.content), "doubts": doubts}))
        for each in asked
    )


def merge_duplicates(
    store: PlaybookStore, *, learn: LearnMode, changed: Collection[str] | None = None
) -> tuple[Delta, ...]:
    """Merge the bullets of a playbook that say the same, or propose it, once. `changed`: only these are held against all."""
    found = refine(store.load(), near_duplicates, changed=changed)
    if not found:
        return ()
    decided = {(each.bullet_id, each.bullet_ids) for each in store.deltas("proposed", "rejected", "undone")}
    applies = _applies(learn, bool)
    return tuple(
        _apply_or_propose(store, each, applies)
        for each in found
        if (each.bullet_id, each.bullet_ids) not in decided
    )


def _apply_or_propose(store: PlaybookStore, delta: Delta, applies: Callable[[Delta], bool]) -> Delta:
    """Apply a change that needs no review, and propose any other.

    What the user wrote is never changed without review. Counts of a run are always applied."""
    unasked = applies(delta) and not _is_well_founded(store, delta)
    if delta.type == "tag" or (unasked and not touches_words_of_a_person(store, delta)):
        applied = store.apply(delta)
        if not isinstance(applied, ChangeRefusal):
            return applied
    return store.propose(delta)


def _accept(store: PlaybookStore, waiting: Sequence[Delta], applies: Callable[[Delta], bool]) -> list[Delta]:
    """Accept the waiting changes that a second run showed too and that need no review."""
    unasked = [each for each in waiting if applies(each)]
    done = [store.accept(each.id) for each in unasked if not touches_words_of_a_person(store, each)]
    return [each for each in done if not isinstance(each, ChangeRefusal)]


def _is_well_founded(store: PlaybookStore, delta: Delta) -> bool:
    """Return True if `delta` replaces a text that several runs confirmed: one run does not outweigh them."""
    if delta.type != "update" or delta.why in _PERSON_SAID:
        return False
    bullet = store.bullets((delta.bullet_id,)).get(delta.bullet_id)
    return bullet is not None and bullet.helpful - bullet.harmful >= WELL_FOUNDED


def touches_words_of_a_person(store: PlaybookStore, delta: Delta) -> bool:
    """Return True if the user wrote, imported, or edited a bullet that `delta` changes."""
    touched = [name for name in dict.fromkeys((delta.bullet_id, *delta.bullet_ids)) if name]
    if any(each.origin in _PERSONS for each in store.bullets(touched).values()):
        return True
    return any(
        each.bullet_id == name and each.status == "applied" and each.origin in _PERSONS
        for name in touched
        for each in store.history(name)
    )


class ReadsSessions(Protocol):
    """The sessions that runs are kept in. Raise UsageError for what there is not."""

    def chunks(self, session: str) -> list[Chunk]: ...

    def session_of_run(self, run: str) -> str: ...


def observe_session(
    playbooks: Sequence[PlaybookStore], sessions: ReadsSessions, database: Database, chunks: Sequence[Chunk]
) -> tuple[Observation, ...]:
    """Keep what the ended runs of a session showed, by all that is on record of them now, and what copies of them showed
    in other sessions: of a run one observation, whichever record of it says the last. Raises DaikuError."""
    seen = observed(sessions, lambda run: copies_of(database, run), chunks)
    if seen:
        for playbook in playbooks:
            playbook.observe(seen)
    return seen


def observed(
    sessions: ReadsSessions, copies: Callable[[str], Copies], chunks: Sequence[Chunk]
) -> tuple[Observation, ...]:
    """What the runs of a session showed, each under the run that did the work."""
    session = chunks[0].session

    @cache
    def outcomes(name: str) -> Mapping[str, Outcome]:
        try:
            return _outcomes(chunks if name == session else sessions.chunks(name))
        except UsageError:  # deleted
            return {}

    found: list[Observation] = []
    for run in outcomes(session):
        records = copies(run)
        places = {Place(session, run), *records.copies}
        with suppress(UsageError):
            places.add(Place(sessions.session_of_run(records.original), records.original))
        first = sorted(
            places, key=lambda place: (place.run != records.original, place)
        )  # of equal ones it holds
        theirs = [each for place in first if (each := outcomes(place.session).get(place.run))]
        found += [each.seen.model_copy(update={"run": records.original}) for each in latest(theirs)]
    return tuple(found)


def _outcomes(chunks: Sequence[Chunk]) -> dict[str, Outcome]:
    """The outcomes of a session's runs; none where no run of it was told a lesson."""
    told_of = any(isinstance(c.event, RunStarted) and c.event.lessons for c in chunks)
    return {each.run: each for each in outcomes_of(chunks)} if told_of else {}


@dataclass(frozen=True, slots=True)
class Learning:
    """Learns from the runs of a workspace that the person trusts."""

    learn: Literal["review", "auto", "off"]
    sessions: ReadsSessions
    database: Database
    playbooks: Playbooks
    redact: Callable[[str], str]
    outside: Callable[[], bool] = bool
    """Whether models are told here what is on no record: by MCP servers, of themselves and their tools."""
    allows: Allows = bool
    """Decides which commands lessons may recommend without review."""

    def after(self, chunks: Sequence[Chunk]) -> tuple[Bullet, ...]:
        """Learn from all that a session holds now, and say what is new in the playbook. Called once more it changes
        nothing. Raises DaikuError."""
        repository, user = self.playbooks.repository, self.playbooks.user
        both = (user,) if repository is None else (repository, user)
        observe_session(both, self.sessions, self.database, chunks)
        if repository is None:
            return ()
        whole = _as_originals(chunks, copies_in(self.database, chunks[0].session), self.sessions)
        changes = learn_from(
            repository,
            whole,
            learn=self.learn,
            redact=self.redact,
            insights=insights_of(whole),
            outside=self.outside(),
            allows=self.allows,
        )
        changes += propose_asked(repository, whole, self.redact)
        return tuple(told(each) for each in changes if each.type != "tag")  # which is a count, and no news


def told(change: Delta) -> Bullet:
    """A change of a playbook as the event of the session that it was learnt in."""
    waits = change.status == "proposed"
    return Bullet(
        bullet_id=change.bullet_id or change.id,
        change="proposed" if waits else change.type,
        content=change.content,
        why=change.why,
    )


def _as_originals(
    chunks: Sequence[Chunk], copies: Mapping[str, str], sessions: ReadsSessions
) -> Sequence[Chunk]:
    """The chunks, those of copied runs as the original's: what was learnt there is known, and opens its place there."""
    if not copies:
        return chunks
    places: dict[str, tuple[str, str]] = {}
    for run, original in copies.items():
        with suppress(UsageError):  # deleted
            places[run] = sessions.session_of_run(original), original
    found: list[Chunk] = []
    for chunk in chunks:
        session, run = places.get(chunk.run, (chunk.session, chunk.run))
        found.append(chunk._replace(session=session, run=run))
    return found
