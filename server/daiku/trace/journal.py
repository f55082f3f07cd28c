"""The journal: sessions and their chunks, written before they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from daiku.domain.base import long_id, new_id
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import (
    EPHEMERAL,
    Chunk,
    Delta,
    Event,
    PlanChanged,
    RunFinished,
    Thinking,
    decode_event,
    encode_event,
    iso_now,
)
from daiku.domain.plans import Plan
from daiku.domain.sessions import Session, SessionStatus
from daiku.trace.changed import changed_in, changes_of
from daiku.trace.database import Database, connect
from daiku.trace.lock import SessionLock
from daiku.trace.window import Window, read_window

BLOCK = 256
"""Sequence numbers reserved at once: one small write per block instead of one per delta."""

INTENTS = frozenset({"tool_call", "approval_given", "input_given", "run_finished"})
"""Events that a power cut must not take away: what is about to be done (else a resumed run would do it again),
the person's word, and the end."""

UNDER_WAY = ("running", "waiting")
"""How a session stands whose run is held by a process."""

Redact = Callable[[str], str]
Copies = Callable[[str, Sequence[Chunk]], Mapping[str, str]]
"""Copies what the chunks of a session name for another one; its new names by the old ones."""


class Journal:
    """Sessions in one database file. Not thread-safe; any number of processes may share the file."""

    def __init__(self, path: Path, redact: Redact = str) -> None:
        self._db = connect(path)
        self._redact = redact
        self._locks = path.parent / "locks"
        self._writers: dict[str, SessionWriter] = {}

    def new_session(self, title: str = "", workspace: str = "") -> Session:
        """A session without chunks. Raises DaikuError where it cannot be stored."""
        return self.get_session(self.add_session(workspace, title))

    def add_session(self, workspace: str = "", title: str = "") -> str:
        """The id of a new session without chunks. Raises DaikuError where it cannot be stored."""
        session, now = long_id("ses"), iso_now()
        self._db.execute(
            "INSERT INTO sessions VALUES(?,?,?,?,?,NULL,'idle',0)",
            (session, title, workspace, now, now),
        )
        return session

    def get_session(self, session: str) -> Session:
        """Raises UsageError (not_found)."""
        row = self._db.execute(f"{_SELECT} WHERE s.id = ?", (session,)).fetchone()
        if row is None:
            raise _unknown("session", session)
        return self._session(row)

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
        rows = self._db.execute(
            f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY s.updated_at DESC, s.id LIMIT ?",
            (*values, limit),
        )
        return [self._session(row) for row in rows.fetchall()]

    def open_sessions(self) -> set[str]:
        """Those whose last run is not over, because it is under way, paused or was interrupted."""
        rows = self._db.execute(
            "SELECT id FROM sessions WHERE status IN ('running', 'waiting', 'paused', 'interrupted')"
        )
        return {row[0] for row in rows}

    def under_way(self, workspace: str) -> list[Session]:
        """The sessions of a folder in which a run is under way now, in any process."""
        rows = self._db.execute(
            f"{_SELECT} WHERE s.workspace = ? AND s.status IN ('running', 'waiting')", (workspace,)
        )
        sessions = [self._session(row) for row in rows.fetchall()]
        return [session for session in sessions if session.status in UNDER_WAY]

    def rename_session(self, session: str, title: str) -> Session:
        self._db.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session))
        return self.get_session(session)

    def delete_session(self, session: str) -> None:
        """Raises UsageError: unknown, or a run of it is under way; DaikuError: it cannot be deleted."""
        self.get_session(session)
        lock = self.lock(session)
        try:
            with self._db.transaction():
                self._db.execute("DELETE FROM chunks WHERE session = ?", (session,))
                self._db.execute("DELETE FROM sessions WHERE id = ?", (session,))
        finally:
            lock.release()
        self._writers.pop(session, None)

    def fork_session(self, session: str, at_seq: int, copies: Copies | None = None) -> Session:
        """A new session that holds the chunks up to and including `at_seq`. What they name by an id that
        only one session can have is renamed: runs, plans, questions; and what `copies` renames."""
        old = self.get_session(session)
        workspace = self._db.execute("SELECT workspace FROM sessions WHERE id = ?", (session,)).fetchone()[0]
        new = self.new_session(old.title, workspace)
        rows = self._db.execute(
            "SELECT seq, time, run, parent, agent, type, data FROM chunks"
            " WHERE session = ? AND seq <= ? ORDER BY seq",
            (session, self._end_of_answer(session, at_seq)),
        ).fetchall()
        names = _new_names(rows)
        if copies is not None:
            names |= copies(new.session_id, [_chunk(session, row) for row in rows])
        renamed = [
            (new.session_id, seq, time, names[run], names[parent] if parent else None, agent, type_, new_data)
            for seq, time, run, parent, agent, type_, data in rows
            for new_data in [_OURS.sub(lambda found: names.get(found[0], found[0]), data)]
        ]
        with self._db.transaction():
            self._db.executemany(_INSERT, renamed)
            self._db.execute(
                "UPDATE sessions SET reserved = ?, model = ?, status = ? WHERE id = ?",
                (rows[-1][0] if rows else 0, old.model, _ended_status(renamed), new.session_id),
            )
        return self.get_session(new.session_id)

    def _end_of_answer(self, session: str, at_seq: int) -> int:
        """`at_seq`, or the end of the run whose last words stand there: what is copied with its answer has
        ended in the copy too."""
        rows = self._db.execute(
            "SELECT seq, parent, type FROM chunks WHERE session = ? AND seq > ? ORDER BY seq LIMIT 20",
            (session, at_seq),
        )
        for seq, parent, type_ in rows:
            if parent is not None or type_ not in _CLOSING:
                break
            if type_ == "run_finished":
                return seq
        return at_seq

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """The durable chunks after `after_seq`, oldest first. Raises UsageError (not_found)."""
        self.get_session(session)
        rows = self._db.execute(
            "SELECT seq, time, run, parent, agent, type, data FROM chunks"
            " WHERE session = ? AND seq > ? ORDER BY seq",
            (session, after_seq),
        )
        return [_chunk(session, row) for row in rows]

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Of the durable chunks those that say what became of files. Raises UsageError (not_found)."""
        self.get_session(session)
        return [_chunk(session, row) for row in changes_of(self._db, session, after_seq)]

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        """The sessions of a workspace that changed files, the last one first, each with where it last did."""
        return changed_in(self._db, workspace)

    def window(self, session: str, *, before_seq: int = 0, last: int) -> tuple[list[Chunk], Window]:
        """About the `last` durable chunks below `before_seq` (0: the end). Raises UsageError (not_found)."""
        self.get_session(session)
        found = read_window(self._db, session, before_seq=before_seq, last=last)
        return [_chunk(session, row) for row in found.rows], found

    def session_of_run(self, run: str) -> str:
        """Raises UsageError (not_found)."""
        # What a run begins with: an index over these alone costs the other events nothing.
        begins = "SELECT session FROM chunks WHERE run = ? AND type IN ('run_started', 'agent_start') LIMIT 1"
        row = self._db.execute(begins, (run,)).fetchone()
        if row is None:
            raise _unknown("run", run)
        return row[0]

    def get_plan(self, plan: str) -> Plan:
        """The plan as it stands. Raises UsageError (not_found)."""
        return self._plan(plan)[2]

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        """Session and run that last changed the plan. Raises UsageError (not_found)."""
        session, run, _ = self._plan(plan)
        return session, run

    def _plan(self, plan: str) -> tuple[str, str, Plan]:
        rows = self._db.execute(
            "SELECT session, run, data FROM chunks WHERE type = 'plan' AND instr(data, ?)"
            " ORDER BY time DESC, seq DESC",
            (f'"planId":"{plan}"',),
        )
        for session, run, data in rows:
            event = _event("plan", data)
            if isinstance(event, PlanChanged) and event.plan.plan_id == plan:
                return session, run, event.plan
        raise _unknown("plan", plan)

    def writer(self, session: str) -> SessionWriter:
        """The one writer of `session` in this process."""
        writer = self._writers.get(session)
        if writer is None:
            writer = self._writers[session] = SessionWriter(self._db, session, self._redact)
        return writer

    def touch(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        """Note what the last run is doing; a title only where there is none yet. Raises DaikuError."""
        self._db.execute(
            "UPDATE sessions SET status = ?, updated_at = ?, model = COALESCE(NULLIF(?, ''), model),"
            " title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
            (status, iso_now(), model, title, session),
        )

    def lock(self, session: str) -> SessionLock:
        """The right to run in `session`, until released or the process ends. Raises UsageError (busy)."""
        lock = SessionLock(self._locks / f"{session}.lock")
        if not lock.acquire():
            raise UsageError(
                Failure(
                    kind="busy",
                    message="Something is under way in this conversation already, perhaps in another window.",
                    hint="Wait for it, stop it, or start a new conversation.",
                )
            )
        return lock

    def close(self) -> None:
        """Give unused sequence numbers back and close the file."""
        with suppress(DaikuError):  # numbers that are not given back are only skipped
            for writer in self._writers.values():
                writer.release()
        self._db.close()

    def _session(self, row: tuple[str, str, str, str, str | None, SessionStatus, int]) -> Session:
        session, title, created, updated, model, status, last = row
        if status in UNDER_WAY and SessionLock(self._locks / f"{session}.lock").free():
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

    def write(self, run: str, parent: str | None, agent: str, events: Iterable[Event]) -> list[Chunk]:
        """Number, redact and store `events` as one transaction; only then are they returned.

        Raises DaikuError where they cannot be stored (a full disk): then none is.
        """
        time = iso_now()
        chunks: list[Chunk] = []
        rows: list[_Row] = []
        for event in events:
            chunk = self._chunk(run, parent, agent, time, event)
            chunks.append(chunk)
            if event.type not in EPHEMERAL:
                rows.append(_row(chunk))
        if rows:
            if any(chunk.type in INTENTS for chunk in chunks):
                with self._db.surely():
                    self._store(rows)
            else:
                self._store(rows)
        return chunks

    def _store(self, rows: list[_Row]) -> None:
        if len(rows) == 1:
            self._db.write(_INSERT, rows[0])
            return
        with self._db.transaction():
            self._db.executemany(_INSERT, rows)

    @property
    def last_seq(self) -> int:
        """The last number given out by this writer; 0 before the first."""
        return self._next - 1 if self._reserved else 0

    def release(self) -> None:
        """Give back what was reserved and not used, if nobody reserved after us."""
        if self._reserved:
            self._db.execute(
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
            row = self._db.execute(
                "UPDATE sessions SET reserved = reserved + ? WHERE id = ? RETURNING reserved",
                (BLOCK, self._session),
            ).fetchone()
            if row is None:
                raise _unknown("session", self._session)
            self._reserved = row[0]
            self._next = self._reserved - BLOCK + 1
        seq = self._next
        self._next += 1
        return seq


_SELECT = (
    "SELECT s.id, s.title, s.created_at, s.updated_at, s.model, s.status,"
    " COALESCE((SELECT MAX(seq) FROM chunks c WHERE c.session = s.id), 0) FROM sessions s"
)
_INSERT = "INSERT INTO chunks VALUES(?,?,?,?,?,?,?,?)"


_OURS = re.compile(r"(?:run|appr|input|checkpoint)_[0-9a-f]{16}|plan_[0-9a-f]{8}")
_NAMING = {"approval_asked": ("appr",), "input_asked": ("input",), "handoff_start": ("run",)}
"""Events that name something for the first time: a nested run before it has written a word."""
_CLOSING = ("usage", "notice", "error", "run_finished")
"""What may stand between a run's last words and its end."""
_PLAN = re.compile(r'"planId":"(plan_[0-9a-f]{8})"')


def _new_names(rows: Iterable[tuple[int, str, str, str | None, str, str, str]]) -> dict[str, str]:
    """New ids for runs, for questions to the person, and for plans that were made or changed here."""
    names: dict[str, str] = {}
    for _, _, run, parent, _, type_, data in rows:
        names |= {old: long_id("run") for old in (run, parent) if old and old not in names}
        for old in _OURS.findall(data) if type_ in _NAMING else ():
            prefix = old.partition("_")[0]
            if prefix in _NAMING[type_] and old not in names:
                names[old] = long_id(prefix)
        for old in _PLAN.findall(data) if type_ == "plan" else ():
            names.setdefault(old, new_id("plan"))
    return names


_Row: TypeAlias = tuple[str, int, str, str, str | None, str, str, str]


def _row(c: Chunk) -> _Row:
    return (c.session, c.seq, c.time, c.run, c.parent, c.agent, c.event.type, c.data)


def _chunk(session: str, row: tuple[int, str, str, str | None, str, str, str]) -> Chunk:
    seq, time, run, parent, agent, type_, data = row
    return Chunk(seq, time, session, run, agent, _event(type_, data), data, parent)


def _event(type_: str, data: str) -> Event:
    """The stored event. Raises DaikuError where it is none."""
    try:
        return decode_event(type_, data)
    except (KeyError, ValidationError) as wrong:
        message = (
            "A record of this conversation cannot be read: it is damaged, or of another version of Daiku."
        )
        hint = "Bring back a copy of daiku.db, or delete the conversation; the others are not touched."
        raise DaikuError(Failure(kind="internal", message=message, hint=hint)) from wrong


def _ended_status(
    rows: list[_Row],
) -> SessionStatus:
    ends = [row for row in rows if row[6] in ("run_started", "run_finished") and row[4] is None]
    if not ends:
        return "idle"
    last = _event(ends[-1][6], ends[-1][7])
    return last.status if isinstance(last, RunFinished) else "interrupted"


def _unknown(what: str, name: str) -> UsageError:
    return UsageError(
        Failure(
            kind="not_found",
            message=f"There is no {what} {name!r}.",
            hint="`daiku sessions list` shows what there is.",
        )
    )
