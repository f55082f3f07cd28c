"""Journal of sessions and their chunks, written before they are shown."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from time import gmtime, strftime, time
from typing import TYPE_CHECKING, get_args

from daiku.domain.base import is_long_id, long_id
from daiku.domain.chunks import Chunk, iso_now
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import PlanDeleted, PlanEvent
from daiku.domain.work.plans import Plan
from daiku.store.lock import Lock
from daiku.store.opening import (
    Place,
    acquire,
    check_in_place,
    get_recovery_notice,
    open_locks,
    open_tables,
    report_damage,
)
from daiku.texts.text import Text, text
from daiku.trace.rows import (
    ALL,
    CHANGED_SESSIONS,
    FILE_CHANGES,
    READ,
    SCHEMA,
    chunk_of,
    event_of,
    lease_transaction,
    not_found_error,
    running_sessions,
)
from daiku.trace.writer import Redact, SessionWriter

if TYPE_CHECKING:
    from daiku.domain.sessions import Session, SessionStatus
    from daiku.trace.fork import CopyReferences
    from daiku.trace.rows import Window

UNDER_WAY = ("running", "waiting")
"""Statuses of a session whose run a process holds."""


class Journal:
    """Sessions in a file, on a server, or in memory. Not thread-safe; processes may share the database."""

    def __init__(self, place: Place, redact: Redact = str) -> None:
        self.database = self._db = open_tables(place, SCHEMA)
        self._redact = redact
        self._locks = open_locks(place)
        self._writers: dict[str, SessionWriter] = {}

    def new_session(self, title: str = "", workspace: str = "") -> Session:
        """Create a session without chunks. Raises DaikuError if it cannot be stored."""
        return self.get_session(self.add_session(workspace, title))

    def add_session(self, workspace: str = "", title: str = "") -> str:
        """Create a session without chunks and return its id. Raises DaikuError if it cannot be stored."""
        session, now = long_id("ses"), iso_now()
        row = (session, self._redact(title), workspace, now, now)
        self._db.write("INSERT INTO sessions VALUES(?,?,?,?,?,NULL,'idle',0)", row)
        return session

    def get_session(self, session: str) -> Session:
        """Return a session. Raises UsageError (not_found)."""
        row = self._db.first(f"{_SELECT} WHERE s.id = ?", (session,))
        if row is None:
            raise not_found_error("journal.no_session", session)
        return self._to_session(row)

    def folder_of(self, session: str) -> str:
        """Return the workspace of a session. Raises UsageError (not_found)."""
        row = self._db.first("SELECT workspace FROM sessions WHERE id = ?", (session,))
        if row is None:
            raise not_found_error("journal.no_session", session)
        return row[0]

    def last_seq(self, session: str) -> int:
        """Return the number of the last durable chunk, 0 before the first. Raises UsageError (not_found)."""
        if last := self._db.first("SELECT MAX(seq) FROM chunks WHERE session = ?", (session,))[0]:
            return last
        self.folder_of(session)
        return 0

    def list_sessions(self, query: str = "", limit: int = 50, workspace: str | None = None) -> list[Session]:
        """Return sessions, newest first; `query` is searched in titles and messages."""
        where, values = ["TRUE"], list[str | int]()
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
        return [self._to_session(row) for row in rows]

    def is_older_than(self, seconds: float) -> bool:
        """Return True if the first session began more than `seconds` ago."""
        row = self._db.first("SELECT created_at FROM sessions ORDER BY rowid LIMIT 1")
        return row is not None and row[0] < strftime("%Y-%m-%dT%H:%M:%S", gmtime(time() - seconds))

    @property
    def recovered(self) -> Text:
        """Notice that the damaged journal was repaired on opening; empty if it was not."""
        return get_recovery_notice(self._db)

    def unfinished_sessions(self) -> set[str]:
        """Return the sessions whose last run is in progress, paused, or interrupted."""
        rows = self._db.query(
            "SELECT id FROM sessions WHERE status IN ('running', 'waiting', 'paused', 'interrupted')"
        )
        return {row[0] for row in rows}

    def running_titles(self, workspace: str, *, excluding: str, most: int) -> list[str]:
        """Return titles of sessions with a live run in this folder, the latest first, without `excluding`."""
        titles = (
            title
            for session, title in running_sessions(self._db, workspace)
            if session != excluding and (self._locks.holds(session) or not self.is_free(session))
        )
        return list(islice(titles, most))

    def delete_session(self, session: str) -> None:
        """Delete a session. Raises UsageError: not_found_error, or in use by a run; DaikuError: it failed."""
        from daiku.trace.fork import forget_copies  # when used

        self.get_session(session)
        lock = self.lock(session)
        try:
            with self.as_holder(session):
                self._db.write("DELETE FROM chunks WHERE session = ?", (session,))
                self._db.write("DELETE FROM sessions WHERE id = ?", (session,))
                forget_copies(self._db, session)
        finally:
            lock.release()
        self._writers.pop(session, None)

    def fork_session(self, session: str, at_seq: int, copies: CopyReferences | None = None) -> Session:
        """Copy the chunks up to `at_seq` to a new session, with new ids of runs, plans, and questions."""
        from daiku.trace.fork import copy_chunks  # when used

        old = self.get_session(session)
        new = self.new_session(old.title, self.folder_of(session)).session_id
        copy_chunks(self._db, session, new, at_seq, copies)
        return self.get_session(new)

    def chunks(self, session: str, after_seq: int = 0, most: int = ALL) -> list[Chunk]:
        """Return the durable chunks after `after_seq`, oldest first, at most `most`.

        Raises UsageError (not_found).
        """
        sql = f"{READ} WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
        rows = self._db.query(sql, (session, after_seq, most))
        if not rows:
            self.folder_of(session)
        return [chunk_of(session, row) for row in rows]

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Return the durable chunks that record file changes. Raises UsageError (not_found)."""
        self.get_session(session)
        return [chunk_of(session, row) for row in self._db.query(FILE_CHANGES, (session, after_seq))]

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        """Return a workspace's sessions with file changes, latest first, with the seq of their last change."""
        return dict(self._db.query(CHANGED_SESSIONS, (workspace,)))

    def window(self, session: str, *, before_seq: int = 0, last: int) -> tuple[list[Chunk], Window]:
        """Return about the `last` durable chunks below `before_seq` (0: the end).

        Raises UsageError (not_found).
        """
        from daiku.trace.rows import read_window  # when used

        self.get_session(session)
        window = read_window(self._db, session, before_seq=before_seq, last=last)
        return [chunk_of(session, row) for row in window.rows], window

    def session_of_run(self, run: str) -> str:
        """Return the session of a run. Raises UsageError (not_found)."""
        # A partial index over the first event types of runs keeps other inserts cheap.
        sql = "SELECT session FROM chunks WHERE run = ? AND type IN ('run_started', 'agent_start') LIMIT 1"
        row = self._db.first(sql, (run,))
        if row is None:
            raise not_found_error(
                "journal.unrecorded_run" if is_long_id(run, "run") else "journal.no_run", run
            )
        return row[0]

    def find_run(self, name: str) -> str:
        """Return the last run of the session called `name`, or `name` if it is no session."""
        sql = "SELECT run FROM chunks WHERE session = ? AND type = 'run_started' AND parent IS NULL ORDER BY seq DESC LIMIT 1"
        row = self._db.first(sql, (name,))
        return row[0] if row is not None else name

    def get_plan(self, plan: str) -> Plan:
        """Return the plan's current version. Raises UsageError (not_found)."""
        return self._find_plan(plan)[2]

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        """Return the session and run that last changed the plan. Raises UsageError (not_found)."""
        session, run, _ = self._find_plan(plan)
        return session, run

    def list_plans(self, workspace: str) -> tuple[Plan, ...]:
        """Return the current plans of a workspace, latest first, without deleted ones."""
        rows = self._db.query(
            "SELECT c.type, c.data FROM chunks c JOIN sessions s ON s.id = c.session"
            " WHERE s.workspace = ? AND c.type IN ('plan', 'plan_deleted') ORDER BY c.time DESC, c.seq DESC",
            (workspace,),
        )
        newest: dict[str, Plan | None] = {}
        for type_, data in rows:
            match event_of(type_, data):
                case PlanEvent(plan=plan):
                    newest.setdefault(plan.plan_id, plan)
                case PlanDeleted(plan_id=plan_id):
                    newest.setdefault(plan_id, None)
                case _:
                    pass
        return tuple(plan for plan in newest.values() if plan is not None)

    def _find_plan(self, plan: str) -> tuple[str, str, Plan]:
        rows = self._db.query(
            "SELECT session, run, type, data FROM chunks WHERE type IN ('plan', 'plan_deleted')"
            " AND instr(data, ?) > 0 ORDER BY time DESC, seq DESC",
            (f'"planId":"{plan}"',),
        )
        for session, run, type_, data in rows:
            event = event_of(type_, data)
            if isinstance(event, PlanEvent) and event.plan.plan_id == plan:
                return session, run, event.plan
            if isinstance(event, PlanDeleted):
                break
        raise not_found_error("journal.no_plan", plan, hint="plan.see_list")

    def writer(self, session: str) -> SessionWriter:
        """Return the only writer of `session` in this process."""
        if session not in self._writers:
            self._writers[session] = SessionWriter(self._db, session, self._redact, self._locks)
        return self._writers[session]

    def note_status(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        """Store the status of the last run; the title only if there is none. Raises DaikuError."""
        with self.as_holder(session) if self._locks.holds(session) else nullcontext():
            self._db.write(
                "UPDATE sessions SET status = ?, updated_at = ?, model = COALESCE(NULLIF(?, ''), model),"
                " title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
                (status, iso_now(), model, self._redact(title) if title else title, session),
            )

    def lock(self, session: str) -> Lock:
        """Acquire the right to run in `session`, until release or process exit.

        Raises UsageError (busy), DaikuError.
        """
        check_in_place(self._db)
        lock = self._locks.of(session)
        if not acquire(lock):
            raise UsageError(Failure(kind="busy", message=text("journal.busy"), hint=text("journal.wait")))
        return lock

    def is_free(self, session: str) -> bool:
        """Return True if no process has a live run in `session`."""
        return self._locks.of(session).is_free()

    def as_holder(self, session: str) -> AbstractContextManager[None]:
        """Return a transaction that requires this process's lease of `session`. Raises LockLost."""
        return lease_transaction(self._db, self._locks.number(session), session)

    def close(self) -> None:
        """Return unused sequence numbers, release locks, and close the database."""
        with suppress(DaikuError):  # unreturned numbers are only skipped
            for writer in self._writers.values():
                writer.release()
            self._locks.close()
        self._db.close()

    def _to_session(self, row: tuple[str, str, str, str, str | None, SessionStatus, int]) -> Session:
        from daiku.domain.sessions import Session, SessionStatus  # when used

        session, title, created, updated, model, status, last = row
        if status in UNDER_WAY and self.is_free(session):
            status = "interrupted"
        # The tables are strict; another status is page damage.
        if status not in get_args(SessionStatus):
            if (fault := report_damage(self._db)) is not None:
                raise fault
            status = "interrupted"
            self._db.write("UPDATE sessions SET status = ? WHERE id = ?", (status, session))
        return Session(
            session_id=session,
            title=title,
            created_at=created,
            updated_at=updated,
            last_seq=last,
            model=model,
            status=status,
        )


_SELECT = (
    "SELECT s.id, s.title, s.created_at, s.updated_at, s.model, s.status,"
    " COALESCE((SELECT MAX(seq) FROM chunks c WHERE c.session = s.id), 0) FROM sessions s"
)
