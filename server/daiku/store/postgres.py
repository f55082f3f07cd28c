"""A PostgreSQL database as a `Database`: one connection for all threads, opened again when the server went away."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any

from daiku.store.database import Values
from daiku.store.dialect import for_postgres
from daiku.store.postgres_faults import CONNECT_SECONDS, check_address, fault, library, unreachable

SCHEMA_LOCK = 0x6461696B76
"""Held while tables are made: several processes may start at once."""
WAIT_SECONDS = 5
"""How long a transaction may stand still before the server ends it: one in a process that was stopped would hold up
whoever takes its work over."""
_SETTINGS = f"SET search_path TO daiku; SET idle_in_transaction_session_timeout TO '{WAIT_SECONDS}s'"
_NETWORK: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": CONNECT_SECONDS * 1000,
    "application_name": "daiku",
    "client_encoding": "utf8",
}
"""A machine that has gone is noticed within seconds, not after the quarter of an hour that is usual."""
_BOOKED = "CREATE TABLE IF NOT EXISTS prepared(digest TEXT PRIMARY KEY)"
_SURELY = "SET synchronous_commit TO on"
_SURE = ("on", "remote_apply")
"""The values of synchronous_commit with which what is committed is on the disk of the server."""
NO_NUL = "\N{SYMBOL FOR NULL}"


class PostgresDatabase:
    """The `Database` on a server, in a schema of its own there (`daiku`). Raises UsageError where the server cannot be
    reached; the next call tries anew."""

    def __init__(self, url: str) -> None:
        check_address(url)
        self.url = url
        self._psycopg: Any = library()
        self._connection: Any = None
        self._within = 0
        """How many transactions are open, one in another."""
        self._sure, self._surely = True, False
        """Whether the server says so of every commit; whether what is written now must be on its disk."""
        self._prepared = set[str]()
        self._alone = threading.RLock()

    def prepare(self, schema: str) -> None:
        digest = hashlib.sha256(schema.encode()).hexdigest()
        with self._alone:
            if digest in self._prepared:
                return
            # Tables that are there are left alone: to make sure of an index holds up whoever writes.
            if not self._is_booked(digest):
                self._make(schema, digest)
            self._prepared.add(digest)

    def has(self, table: str) -> bool:
        return self.first("SELECT to_regclass(?)", (f"daiku.{table}",))[0] is not None

    def has_column(self, table: str, column: str) -> bool:
        columns = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'daiku'"
        return self.first(f"{columns} AND table_name = ? AND column_name = ?", (table, column)) is not None

    def _is_booked(self, digest: str) -> bool:
        if not self.has("prepared"):
            return False
        return self.first("SELECT 1 FROM prepared WHERE digest = ?", (digest,)) is not None

    def _make(self, schema: str, digest: str) -> None:
        with self.transaction():
            self.query("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            if self.first("SELECT to_regnamespace('daiku')")[0] is None:
                self.write("CREATE SCHEMA daiku")
            self.write(_BOOKED)
            if not self._is_booked(digest):
                for statement in filter(str.strip, schema.split(";")):
                    self.write(statement)
                self.write("INSERT INTO prepared VALUES(?)", (digest,))

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        with self._alone:
            cursor = self._run(sql, values)
            return cursor.fetchall() if cursor.description is not None else []

    def first(self, sql: str, values: Values = ()) -> Any:
        with self._alone:
            return self._run(sql, values).fetchone()

    def write(self, sql: str, values: Values = ()) -> None:
        with self._alone:
            self._run(sql, values)

    def write_all(self, sql: str, rows: Iterable[Values]) -> None:
        with self._alone:
            connection = self._ready()
            try:
                with connection.cursor() as cursor:
                    cursor.executemany(for_postgres(sql), [_storable(row) for row in rows])
            except self._psycopg.Error as wrong:
                raise fault(self.url, wrong) from wrong

    @contextmanager
    def transaction(self) -> Generator[None]:
        with self._alone:
            connection = self._ready()
            try:
                with connection.transaction():
                    self._within += 1
                    try:
                        yield
                    finally:
                        self._within -= 1
            except self._psycopg.Error as wrong:
                raise fault(self.url, wrong) from wrong

    @contextmanager
    def durable(self) -> Generator[None]:
        with self._alone:
            self._ready()
            if self._sure or self._within:  # the outermost transaction has said already how it ends
                yield
                return
            self._surely = True
            self.write(_SURELY)
            try:
                yield
            finally:
                self._surely = False
                self.write("RESET synchronous_commit")

    def close(self) -> None:
        with self._alone:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _run(self, sql: str, values: Values) -> Any:
        connection = self._ready()
        try:
            return connection.execute(for_postgres(sql), _storable(values))
        except self._psycopg.Error as wrong:
            raise fault(self.url, wrong) from wrong

    def _ready(self) -> Any:
        """The connection. One that the server has closed while nobody asked is replaced; not within a transaction,
        which is lost with it."""
        if not self._within and not self._is_alive():
            self._connection = self._connect()
        return self._connection

    def _is_alive(self) -> bool:
        connection = self._connection
        if connection is None or connection.closed:
            return False
        with suppress(self._psycopg.Error):
            # What has arrived is taken in without waiting: the server's last words, then the end. A statement is not
            # sent to find out: nobody would know whether it was carried out.
            connection.pgconn.consume_input()
            connection.pgconn.consume_input()
            return not connection.closed
        with suppress(self._psycopg.Error):
            connection.close()
        return False

    def _connect(self) -> Any:
        psycopg = self._psycopg
        try:
            connection = psycopg.connect(
                self.url, autocommit=True, cursor_factory=psycopg.RawCursor, **_NETWORK
            )
        except psycopg.Error as wrong:
            raise unreachable(self.url, wrong) from wrong
        try:
            connection.execute(_SETTINGS)
            self._sure = connection.execute("SHOW synchronous_commit").fetchone()[0] in _SURE
            if self._surely and not self._sure:  # it was lost while something was written
                connection.execute(_SURELY)
        except psycopg.Error as wrong:
            connection.close()
            raise unreachable(self.url, wrong) from wrong
        return connection


def _storable(values: Values) -> Values:
    """The values with a sign in place of each NUL, which no text of PostgreSQL can hold."""
    return tuple(
        value.replace("\0", NO_NUL) if isinstance(value, str) and "\0" in value else value for value in values
    )
