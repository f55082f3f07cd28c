"""Writer of a session's chunks: numbered, redacted, and fenced by the session's lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daiku.domain.chunks import Chunk, decode_event, encode_event, iso_now
from daiku.domain.events import EPHEMERAL, Delta, Event, Thinking
from daiku.guard.rules.redact import redact_encoded
from daiku.store.database import Database
from daiku.store.lock import LockLost, Locks
from daiku.trace.rows import INSERT, INSERT_AS_HOLDER, Row, lease_transaction, not_found_error, row_of

BLOCK = 256
"""Sequence numbers reserved at once: one small write per block instead of one per delta."""

PERSONS_WORD = frozenset({"approval_given", "input_given"})
"""Events that must survive a power failure, so that users are not asked twice."""

Redact = Callable[[str], str]


class SessionWriter:
    """Assigns a session's sequence numbers and writes its chunks."""

    def __init__(self, db: Database, session: str, redact: Redact, locks: Locks) -> None:
        self._db = db
        self._session = session
        self._redact = redact
        self._locks = locks
        self._next = 1
        self._reserved = 0

    def write(
        self, run: str, parent: str | None, agent: str, events: Iterable[Event], *, durable: bool = False
    ) -> list[Chunk]:
        """Number, redact, and store `events` in one transaction; synced to disk if `durable` or user input.

        Raises DaikuError (full disk), LockLost (another process has the session); then none is stored.
        """
        time = iso_now()
        chunks: list[Chunk] = []
        rows: list[Row] = []
        for event in events:
            chunk = self._build_chunk(run, parent, agent, time, event)
            chunks.append(chunk)
            if event.type not in EPHEMERAL:
                rows.append(row_of(chunk))
                durable = durable or event.type in PERSONS_WORD
        if rows and durable:
            with self._db.durable():
                self._store(rows)
        elif rows:
            self._store(rows)
        return chunks

    def _store(self, rows: list[Row]) -> None:
        number = self._locks.number(self._session)
        if number is not None:
            self._store_as_holder(rows, number)
        elif len(rows) == 1:
            self._db.write(INSERT, rows[0])
        else:
            with self._db.transaction():
                self._db.write_all(INSERT, rows)

    def _store_as_holder(self, rows: list[Row], number: int) -> None:
        """Store rows under the lease with this number, whose row stays locked until they are stored."""
        if len(rows) == 1:  # one query to the server instead of four
            if self._db.first(INSERT_AS_HOLDER, (*rows[0], self._session, number)) is None:
                raise LockLost
            return
        with lease_transaction(self._db, number, self._session):
            self._db.write_all(INSERT, rows)

    @property
    def last_seq(self) -> int:
        """Last number assigned by this writer; 0 before the first."""
        return self._next - 1 if self._reserved else 0

    def release(self) -> None:
        """Return unused sequence numbers, unless another writer reserved some since."""
        if self._reserved:
            self._db.write(
                "UPDATE sessions SET reserved = ? WHERE id = ? AND reserved = ?",
                (self._next - 1, self._session, self._reserved),
            )
            self._reserved = 0

    def _build_chunk(self, run: str, parent: str | None, agent: str, time: str, event: Event) -> Chunk:
        if isinstance(event, Delta | Thinking):  # redacting the text alone halves the work
            redacted = self._redact(event.text)
            if redacted != event.text:
                event = type(event)(text=redacted)
            data = encode_event(event)
        else:
            encoded = encode_event(event)
            data = redact_encoded(encoded, self._redact)
            if data != encoded:
                event = decode_event(event.type, data)
        return Chunk(self._next_seq(), time, self._session, run, agent, event, data, parent)

    def _next_seq(self) -> int:
        if self._next > self._reserved:
            row = self._db.first(
                "UPDATE sessions SET reserved = reserved + ? WHERE id = ? RETURNING reserved",
                (BLOCK, self._session),
            )
            if row is None:
                raise not_found_error("journal.no_session", self._session)
            self._reserved = row[0]
            self._next = self._reserved - BLOCK + 1
        seq = self._next
        self._next += 1
        return seq
