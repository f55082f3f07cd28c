"""PostgreSQL databases: one connection for all threads, or an async one; reopened when it was lost."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import re
import threading
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.database import Values
from daiku.texts.text import Text, text

CONNECT_SECONDS = 10
_PASSWORD = re.compile(r"(?<=:)[^:@/\s]+(?=@)|(?<=password=)\S+")
_MASKABLE = re.compile(r"[a-z]+://(?:[^@/?#\s]*@)?[^@/?#\s]*(?:/[^@?#\s]*)?(?:\?\S*)?")
"""A database URL whose credentials can be masked."""


def load_psycopg() -> Any:
    """Import psycopg, only when a database is opened. Raises UsageError without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as wrong:
        raise UsageError(
            Failure(kind="usage", message=text("store.no_psycopg"), hint=text("store.install_postgres"))
        ) from wrong


def check_address(url: str) -> None:
    """Raise UsageError if an unencoded character ends the password early, so that it could be shown."""
    try:
        urlsplit(url)
        match = _MASKABLE.fullmatch(url)
    except ValueError:  # unbalanced bracket
        match = None
    if match is None:
        raise UsageError(
            Failure(kind="usage", message=text("store.wrong_url"), hint=text("store.encode_password"))
        )


def get_host(url: str) -> str:
    """Return the server in `url` without credentials, for messages."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'localhost'}{port}{parts.path}"


def find_passwords(url: str) -> list[str]:
    """Return the passwords in a URL, encoded and decoded."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0].partition(":")[2]
    parameters = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword")]
    return [each for each in {login, unquote(login), *parameters} if each]


def build_connection_error(url: str, wrong: Exception) -> UsageError:
    """Return the error of a failed connection."""
    message = text("store.no_postgres", host=get_host(url), why=_format_error(url, wrong))
    return UsageError(Failure(kind="usage", message=message, hint=text("store.check_url"), retryable=True))


def build_statement_error(url: str, wrong: Exception) -> DaikuError:
    """Return the error of a failed statement or a lost connection."""
    message = text("store.postgres_failed", host=get_host(url), why=_format_error(url, wrong))
    return DaikuError(Failure(kind="internal", message=message, hint=text("store.check_url")))


def _format_error(url: str, wrong: Exception) -> Text:
    """Return the error message in one line, without passwords."""
    if isinstance(wrong, TimeoutError):
        return text("store.no_answer", seconds=CONNECT_SECONDS)
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    message = lines[0] if lines else type(wrong).__name__
    for password in find_passwords(url):
        message = message.replace(password, "***")
    return Text(_PASSWORD.sub("***", message)[:300].rstrip("."))


class AsyncPostgres:
    """One connection in autocommit mode, reopened after a failure. Methods raise DaikuError, UsageError."""

    def __init__(self, url: str) -> None:
        check_address(url)
        self._url = url
        self._psycopg: Any = load_psycopg()
        self._connection: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()

    async def query(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        connection = await self._get_connection()
        try:
            cursor = await connection.execute(sql, values or None)
            return await cursor.fetchall() if cursor.description is not None else []
        except self._psycopg.Error as wrong:
            raise build_statement_error(self._url, wrong) from wrong

    async def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each of `rows`, atomically."""
        connection = await self._get_connection()
        try:
            async with connection.transaction(), connection.cursor() as cursor:
                await cursor.executemany(sql, rows)
        except self._psycopg.Error as wrong:
            raise build_statement_error(self._url, wrong) from wrong

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit all writes inside, or roll them back on an exception."""
        connection = await self._get_connection()
        try:
            async with connection.transaction():
                yield
        except self._psycopg.Error as wrong:
            raise build_statement_error(self._url, wrong) from wrong

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None and self._loop is asyncio.get_running_loop():
            await connection.close()

    async def _get_connection(self) -> Any:
        async with self._opening:
            loop = asyncio.get_running_loop()
            if self._connection is None or self._connection.closed or self._loop is not loop:
                self._connection, self._loop = await self._connect(), loop
            return self._connection

    async def _connect(self) -> Any:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._psycopg.AsyncConnection.connect(self._url, autocommit=True)
        except (self._psycopg.Error, TimeoutError) as wrong:
            raise build_connection_error(self._url, wrong) from wrong


_TOKENS = re.compile(
    r"""
    json_extract\(\s*(?P<column>[\w.]+)\s*,\s*'\$\.(?P<field>\w+)'\s*\)
    | (?P<clock>julianday\('now'\))
    | (?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*)
    | (?P<value>\?)
    | (?P<left_out>\s+INDEXED\s+BY\s+\w+|,?\s*\b(?:STRICT|WITHOUT\s+ROWID)\b)
    | \b(?P<key>INTEGER\s+PRIMARY\s+KEY(?:\s+AUTOINCREMENT)?)\b
    | \b(?P<word>TEXT|INTEGER|REAL|BLOB|LIKE|instr)\b
    """,
    re.VERBOSE,
)
_MAKES = re.compile(r"^\s*(?:CREATE|ALTER)\b", re.MULTILINE)
_WORDS = {
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "BLOB": "BYTEA",
    "LIKE": "ILIKE",  # LIKE of SQLite ignores case
    "instr": "strpos",
    "TEXT": "TEXT",
}
_KEY = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
_CLOCK = "(extract(epoch FROM clock_timestamp())::float8 / 86400 + 2440587.5)"
"""The current time as SQLite's julianday, in days."""
_NO_TEXT = r"'\u0000', '\u2400'"
"""NUL, which PostgreSQL texts cannot contain, and its replacement."""


@cache
def translate(sql: str) -> str:
    """Translate a statement or a schema for PostgreSQL: each `?` becomes `$1`, `$2`, and so on.

    Texts are compared bytewise, as in SQLite. The server rejects what only SQLite knows (`INSERT OR REPLACE`,
    `PRAGMA`); both know `ON CONFLICT`.
    """
    numbers = iter(range(1, sql.count("?") + 1))
    words = {**_WORDS, "TEXT": 'TEXT COLLATE "C"'} if _MAKES.search(sql) else _WORDS

    def replace_token(match: re.Match[str]) -> str:
        if match["field"] is not None:
            return f"(replace({match['column']}, {_NO_TEXT})::json ->> '{match['field']}')"
        if match["clock"] is not None:
            return _CLOCK
        if match["value"] is not None:
            return f"${next(numbers)}"
        if match["left_out"] is not None:
            return ""
        if match["key"] is not None:
            return _KEY
        return words[match["word"]] if match["word"] is not None else match[0]

    return _TOKENS.sub(replace_token, sql)


SCHEMA_LOCK = 0x6461696B76
"""Key of the advisory lock for creating tables."""
WAIT_SECONDS = 5
"""Seconds after which the server ends an idle transaction, so that a stopped process does not delay a
takeover."""
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
"""Connection options that detect a lost machine within seconds, not the default quarter of an hour."""
_PREPARED_TABLE = "CREATE TABLE IF NOT EXISTS prepared(digest TEXT PRIMARY KEY)"
_DURABLE = "SET synchronous_commit TO on"
_DURABLE_MODES = ("on", "remote_apply")
"""Values of synchronous_commit that guarantee that commits are on the server's disk."""
NO_NUL = "\N{SYMBOL FOR NULL}"


class PostgresDatabase:
    """The `Database` on a server, in the schema `daiku`. Raises UsageError if it is unreachable."""

    def __init__(self, url: str) -> None:
        check_address(url)
        self.url = url
        self._psycopg: Any = load_psycopg()
        self._connection: Any = None
        self._depth = 0
        """Depth of nested transactions."""
        self._is_always_durable, self._is_durable = True, False
        """Whether all commits are durable on the server; whether current writes must be."""
        self._prepared = set[str]()
        self._alone = threading.RLock()

    def prepare(self, schema: str) -> None:
        digest = hashlib.sha256(schema.encode()).hexdigest()
        with self._alone:
            if digest in self._prepared:
                return
            # Skip existing tables: CREATE INDEX IF NOT EXISTS would block writers.
            if not self._is_prepared(digest):
                self._create_tables(schema, digest)
            self._prepared.add(digest)

    def has(self, table: str) -> bool:
        return self.first("SELECT to_regclass(?)", (f"daiku.{table}",))[0] is not None

    def has_column(self, table: str, column: str) -> bool:
        columns = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'daiku'"
        return self.first(f"{columns} AND table_name = ? AND column_name = ?", (table, column)) is not None

    def _is_prepared(self, digest: str) -> bool:
        if not self.has("prepared"):
            return False
        return self.first("SELECT 1 FROM prepared WHERE digest = ?", (digest,)) is not None

    def _create_tables(self, schema: str, digest: str) -> None:
        with self.transaction():
            self.query("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            if self.first("SELECT to_regnamespace('daiku')")[0] is None:
                self.write("CREATE SCHEMA daiku")
            self.write(_PREPARED_TABLE)
            if not self._is_prepared(digest):
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
            connection = self._get_connection()
            try:
                with connection.cursor() as cursor:
                    cursor.executemany(translate(sql), [_replace_nul(row) for row in rows])
            except self._psycopg.Error as wrong:
                raise build_statement_error(self.url, wrong) from wrong

    @contextmanager
    def transaction(self) -> Generator[None]:
        with self._alone:
            connection = self._get_connection()
            try:
                with connection.transaction():
                    self._depth += 1
                    try:
                        yield
                    finally:
                        self._depth -= 1
            except self._psycopg.Error as wrong:
                raise build_statement_error(self.url, wrong) from wrong

    @contextmanager
    def durable(self) -> Generator[None]:
        with self._alone:
            self._get_connection()
            if self._is_always_durable or self._depth:  # the outermost transaction decides durability
                yield
                return
            self._is_durable = True
            self.write(_DURABLE)
            try:
                yield
            finally:
                self._is_durable = False
                self.write("RESET synchronous_commit")

    def close(self) -> None:
        with self._alone:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _run(self, sql: str, values: Values) -> Any:
        connection = self._get_connection()
        try:
            return connection.execute(translate(sql), _replace_nul(values))
        except self._psycopg.Error as wrong:
            raise build_statement_error(self.url, wrong) from wrong

    def _get_connection(self) -> Any:
        """Return the connection. A closed one is reopened, except within a transaction."""
        if not self._depth and not self._is_alive():
            self._connection = self._connect()
        return self._connection

    def _is_alive(self) -> bool:
        connection = self._connection
        if connection is None or connection.closed:
            return False
        with suppress(self._psycopg.Error):
            # Read pending input without blocking to notice a closed connection. A probing statement would be
            # ambiguous: nobody would know whether it was executed.
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
            raise build_connection_error(self.url, wrong) from wrong
        try:
            connection.execute(_SETTINGS)
            self._is_always_durable = (
                connection.execute("SHOW synchronous_commit").fetchone()[0] in _DURABLE_MODES
            )
            if (
                self._is_durable and not self._is_always_durable
            ):  # the connection was lost during a durable write
                connection.execute(_DURABLE)
        except psycopg.Error as wrong:
            connection.close()
            raise build_connection_error(self.url, wrong) from wrong
        return connection


def _replace_nul(values: Values) -> Values:
    """Return the values with NUL replaced, which PostgreSQL texts cannot contain."""
    return tuple(
        value.replace("\0", NO_NUL) if isinstance(value, str) and "\0" in value else value for value in values
    )
