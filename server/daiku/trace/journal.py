"""The journal: sessions and their chunks, written before they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.domain.base import long_id
from daiku.domain.chunks import Chunk, decode_event, encode_event, iso_now
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import EPHEMERAL, Delta, Event, PlanEvent, Thinking
from daiku.domain.work.plans import Plan
from daiku.store.database import Database
from daiku.store.lock import Lock, MemoryLock, SessionLock, locks_beside
from daiku.store.sqlite import connect
from daiku.texts.text import text
from daiku.trace.rows import (
    INSERT,
    READ,
    SCHEMA,
    Row,
    chunk_of,
    event_of,
    file_changes,
    row_of,
    running_sessions,
    sessions_with_changes,
)

if TYPE_CHECKING:
    from daiku.domain.sessions import Session, SessionStatus
    from daiku.trace.fork import Copies
    from daiku.trace.window import Window

BLOCK = 256
"""Sequence numbers reserved at once: one small write per block instead of one per delta."""

PERSONS_WORD = frozenset({"approval_given", "input_given"})
"""Events that a power cut must not take away: nobody likes to be asked twice."""

UNDER_WAY = ("running", "waiting")
"""How a session stands whose run is held by a process."""

Redact = Callable[[str], str]


class Journal:
    """Sessions in one database file, or in memory without one. Not thread-safe; any number of processes may share
    the file."""

    def __init__(self, path: Path | None, redact: Redact = str) -> None:
        self._db = connect(path, SCHEMA)
        self._redact = redact
        self._locks = locks_beside(path) if path is not None else None
        self._held: set[str] = set()
        """The sessions that are locked by this journal."""
        self._writers: dict[str, SessionWriter] = {}

    def new_session(self, title: str = "", workspace: str = "") -> Session:
        """A session without chunks. Raises DaikuError where it cannot be stored."""
        return self.get_session(self.add_session(workspace, title))

    def add_session(self, workspace: str = "", title: str = "") -> str:
        """The id of a new session without chunks. Raises DaikuError where it cannot be stored."""
        session, now = long_id("ses"), iso_now()
        row = (session, title, workspace, now, now)
        self._db.write("INSERT INTO sessions VALUES(?,?,?,?,?,NULL,'idle',0)", row)
        return session

    def get_session(self, session: str) -> Session:
        """Return a session. Raises UsageError (not_found)."""
        row = self._db.first(f"{_SELECT} WHERE s.id = ?", (session,))
        if row is None:
            raise _unknown("journal.no_session", session)
        return self._session(row)

    def folder_of(self, session: str) -> str:
        """The workspace that a session belongs to. Raises UsageError (not_found)."""
        row = self._db.first("SELECT workspace FROM sessions WHERE id = ?", (session,))
        if row is None:
            raise _unknown("journal.no_session", session)
        return row[0]

    def last_seq(self, session: str) -> int:
        """The number of the last durable chunk, 0 before the first. Raises UsageError (not_found)."""
        if last := self._db.first("SELECT MAX(seq) FROM chunks WHERE session = ?", (session,))[0]:
            return last
        self.folder_of(session)
        return 0

    def list_sessions(self, query: str = "", limit: int = 50, workspace: str | None = None) -> list[Session]:
        """Newest first; `query` is looked for in titles and in what people and models said."""
        where, values = ["1"], list[str | int]()
        if workspace is not None:
            where.append("s.workspace = ?")
            values.append(workspace)
        if query:
            like = "%" + query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            where.append(
                "(s.title LIKE ? ESCAPE '\\' OR EXISTS(SELECT 1 FROM chunks c WHERE c.session = s.id"
                " AND c.type IN ('run_started', 'message') AND COALESCE(json_extract(c.data, '$.prompt'),"
                " json_extract(c.data, '$.text')) LIKE ? ESCAPE '\\'))"
            )
            values += [like, like]
        rows = self._db.query(
            f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY s.updated_at DESC, s.id LIMIT ?",
            (*values, limit),
        )
        return [self._session(row) for row in rows]

    def unfinished_sessions(self) -> set[str]:
        """Those whose last run is not over, because it is under way, paused or was interrupted."""
        rows = self._db.query(
            "SELECT id FROM sessions WHERE status IN ('running', 'waiting', 'paused', 'interrupted')"
        )
        return {row[0] for row in rows}

    def running_titles(self, workspace: str, *, beside: str, most: int) -> list[str]:
        """The titles of at most so many other sessions than `beside` in which a run of this folder is under way
        now, in any process, the last one first."""
        held = (
            title
            for session, title in running_sessions(self._db, workspace)
            if session != beside and (session in self._held or not self._lock(session).is_free())
        )
        return list(islice(held, most))

    def delete_session(self, session: str) -> None:
        """Delete a session. Raises UsageError: unknown, or a run of it is in progress; DaikuError: it failed."""
        self.get_session(session)
        lock = self.lock(session)
        try:
            with self._db.transaction():
                self._db.write("DELETE FROM chunks WHERE session = ?", (session,))
                self._db.write("DELETE FROM sessions WHERE id = ?", (session,))
        finally:
            lock.release()
        self._writers.pop(session, None)

    def fork_session(self, session: str, at_seq: int, copies: Copies | None = None) -> Session:
        """A new session that holds the chunks up to and including `at_seq`. What they name by an id that
        only one session can have is renamed: runs, plans, questions; and what `copies` renames."""
        from daiku.trace.fork import copy_chunks  # when used

        old = self.get_session(session)
        new = self.new_session(old.title, self.folder_of(session)).session_id
        copy_chunks(self._db, session, new, at_seq, copies)
        return self.get_session(new)

    def chunks(self, session: str, after_seq: int = 0, most: int = -1) -> list[Chunk]:
        """The durable chunks after `after_seq`, oldest first, all or the first `most`. Raises UsageError (not_found)."""
        behind = f"{READ} WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
        rows = self._db.query(behind, (session, after_seq, most))
        if not rows:
            self.folder_of(session)
        return [chunk_of(session, row) for row in rows]

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Of the durable chunks those that say what became of files. Raises UsageError (not_found)."""
        self.get_session(session)
        return [chunk_of(session, row) for row in file_changes(self._db, session, after_seq)]

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        """The sessions of a workspace that changed files, the last one first, each with where it last did."""
        return sessions_with_changes(self._db, workspace)

    def window(self, session: str, *, before_seq: int = 0, last: int) -> tuple[list[Chunk], Window]:
        """About the `last` durable chunks below `before_seq` (0: the end). Raises UsageError (not_found)."""
        from daiku.trace.window import read_window  # when used

        self.get_session(session)
        found = read_window(self._db, session, before_seq=before_seq, last=last)
        return [chunk_of(session, row) for row in found.rows], found

    def session_of_run(self, run: str) -> str:
        """Return the session of a run. Raises UsageError (not_found)."""
        # What a run begins with: an index over these alone costs the other events nothing.
        begins = "SELECT session FROM chunks WHERE run = ? AND type IN ('run_started', 'agent_start') LIMIT 1"
        row = self._db.first(begins, (run,))
        if row is None:
            raise _unknown("journal.no_run", run)
        return row[0]

    def get_plan(self, plan: str) -> Plan:
        """The plan as it stands. Raises UsageError (not_found)."""
        return self._plan(plan)[2]

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        """Session and run that last changed the plan. Raises UsageError (not_found)."""
        session, run, _ = self._plan(plan)
        return session, run

    def _plan(self, plan: str) -> tuple[str, str, Plan]:
        rows = self._db.query(
            "SELECT session, run, data FROM chunks WHERE type = 'plan' AND instr(data, ?)"
            " ORDER BY time DESC, seq DESC",
            (f'"planId":"{plan}"',),
        )
        for session, run, data in rows:
            event = event_of("plan", data)
            if isinstance(event, PlanEvent) and event.plan.plan_id == plan:
                return session, run, event.plan
        raise _unknown("journal.no_plan", plan)

    def writer(self, session: str) -> SessionWriter:
        """The one writer of `session` in this process."""
        if session not in self._writers:
            self._writers[session] = SessionWriter(self._db, session, self._redact)
        return self._writers[session]

    def note_status(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        """Note what the last run is doing; a title only where there is none yet. Raises DaikuError."""
        self._db.write(
            "UPDATE sessions SET status = ?, updated_at = ?, model = COALESCE(NULLIF(?, ''), model),"
            " title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
            (status, iso_now(), model, title, session),
        )

    def lock(self, session: str) -> Lock:
        """The right to run in `session`, until released or the process ends. Raises UsageError (busy)."""
        lock = self._lock(session)
        if not lock.acquire():
            raise UsageError(Failure(kind="busy", message=text("journal.busy"), hint=text("journal.wait")))
        return lock

    def _lock(self, session: str) -> Lock:
        if self._locks is None:
            return MemoryLock(session, self._held)
        return SessionLock(self._locks / f"{session}.lock", self._held)

    def close(self) -> None:
        """Give unused sequence numbers back and close the file."""
        with suppress(DaikuError):  # numbers that are not given back are only skipped
            for writer in self._writers.values():
                writer.release()
        self._db.close()

    def _session(self, row: tuple[str, str, str, str, str | None, SessionStatus, int]) -> Session:
        from daiku.domain.sessions import Session  # when used

        session, title, created, updated, model, status, last = row
        if status in UNDER_WAY and self._lock(session).is_free():
            status = "interrupted"
        return Session(
            session_id=session,
            title=title,
            created_at=created,
            updated_at=updated,
            last_seq=last,
            model=model,
            status=status,
        )


class SessionWriter:
    """Gives out a session's sequence numbers and writes its chunks."""

    def __init__(self, db: Database, session: str, redact: Redact) -> None:
        self._db = db
        self._session = session
        self._redact = redact
        self._next = 1
        self._reserved = 0

    def write(
        self, run: str, parent: str | None, agent: str, events: Iterable[Event], *, surely: bool = False
    ) -> list[Chunk]:
        """Number, redact and store `events` as one transaction; only then are they returned. `surely`: a power
        cut does not take them back either, nor what was written before; the person's word is always kept so.

        Raises DaikuError where they cannot be stored (a full disk): then none is.
        """
        time = iso_now()
        chunks: list[Chunk] = []
        rows: list[Row] = []
        for event in events:
            chunk = self._chunk(run, parent, agent, time, event)
            chunks.append(chunk)
            if event.type not in EPHEMERAL:
                rows.append(row_of(chunk))
                surely = surely or event.type in PERSONS_WORD
        if rows and surely:
            with self._db.durable():
                self._store(rows)
        elif rows:
            self._store(rows)
        return chunks

    def _store(self, rows: list[Row]) -> None:
        if len(rows) == 1:
            self._db.write(INSERT, rows[0])
            return
        with self._db.transaction():
            self._db.write_all(INSERT, rows)

    @property
    def last_seq(self) -> int:
        """The last number given out by this writer; 0 before the first."""
        return self._next - 1 if self._reserved else 0

    def release(self) -> None:
        """Return unused reserved sequence numbers, unless another writer reserved some since."""
        if self._reserved:
            self._db.write(
                "UPDATE sessions SET reserved = ? WHERE id = ? AND reserved = ?",
                (self._next - 1, self._session, self._reserved),
            )
            self._reserved = 0

    def _chunk(self, run: str, parent: str | None, agent: str, time: str, event: Event) -> Chunk:
        if isinstance(event, Delta | Thinking):  # the text alone: half as much to look through
            clean = self._redact(event.text)
            if clean != event.text:
                event = type(event)(text=clean)
            data = encode_event(event)
        else:
            written = encode_event(event)
            data = self._redact(written)
            if data != written:
                event = decode_event(event.type, data)
        return Chunk(self._take(), time, self._session, run, agent, event, data, parent)

    def _take(self) -> int:
        if self._next > self._reserved:
            row = self._db.first(
                "UPDATE sessions SET reserved = reserved + ? WHERE id = ? RETURNING reserved",
                (BLOCK, self._session),
            )
            if row is None:
                raise _unknown("journal.no_session", self._session)
            self._reserved = row[0]
            self._next = self._reserved - BLOCK + 1
        seq = self._next
        self._next += 1
        return seq


_SELECT = (
    "SELECT s.id, s.title, s.created_at, s.updated_at, s.model, s.status,"
    " COALESCE((SELECT MAX(seq) FROM chunks c WHERE c.session = s.id), 0) FROM sessions s"
)


def _unknown(key: str, name: str) -> UsageError:
    return UsageError(
        Failure(kind="not_found", message=text(key, name=repr(name)), hint=text("journal.list_sessions"))
    )
