"""Learning from runs, after they have ended and after what came later: what they showed of bullets, and new lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from daiku.core.playbook.evidence.outcome import Outcome, latest, outcomes_of
from daiku.core.playbook.insights.proposals import insights_of
from daiku.core.playbook.lessons.automatic import Allows
from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import UsageError
from daiku.domain.events import RunStarted
from daiku.domain.held import Bullet
from daiku.domain.playbook import Delta, Observation
from daiku.playbook.lessons_from_runs import learn_from, propose_asked
from daiku.playbook.repository import Playbooks
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.trace.copies import Copies, Place, copies_in, copies_of


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
    known = {session: _outcomes(chunks)}

    def elsewhere(name: str) -> Mapping[str, Outcome]:
        if name not in known:
            known[name] = {}
            with suppress(UsageError):  # deleted
                known[name] = _outcomes(sessions.chunks(name))
        return known[name]

    found: list[Observation] = []
    for run in known[session]:
        records = copies(run)
        places = {Place(session, run), *records.copies}
        with suppress(UsageError):
            places.add(Place(sessions.session_of_run(records.original), records.original))
        first = sorted(
            places, key=lambda place: (place.run != records.original, place)
        )  # of equal ones it holds
        theirs = [each for place in first if (each := elsewhere(place.session).get(place.run))]
        found += _of_one(records.original, theirs)
    return tuple(found)


def _outcomes(chunks: Sequence[Chunk]) -> dict[str, Outcome]:
    """The outcomes of a session's runs; none where no run of it was told a lesson."""
    told_of = any(isinstance(c.event, RunStarted) and c.event.lessons for c in chunks)
    return {each.run: each for each in outcomes_of(chunks)} if told_of else {}


def _of_one(run: str, records: Sequence[Outcome]) -> list[Observation]:
    """The observations of one run, by all records of it."""
    return [
        Observation(
            run=run,
            bullet=each.bullet,
            verdict=each.verdict,
            why=each.why,
            session=each.session,
            seq=each.seq,
            version=each.version,
        )
        for each in latest(records)
    ]


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
