"""A PostgreSQL database through psycopg: one connection, opened when it is first used and again when it was lost."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.texts.text import Text, text

CONNECT_SECONDS = 10
_PASSWORD = re.compile(r"(?<=:)[^:@/\s]+(?=@)|(?<=password=)\S+")


class PostgresDatabase:
    """One connection in autocommit mode. Methods raise DaikuError where the server refuses or went away, UsageError where
    it cannot be reached at all; the next call tries anew."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._psycopg: Any = _library()
        self._connection: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()

    async def query(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement gives; none where it gives none."""
        connection = await self._ready()
        try:
            cursor = await connection.execute(sql, values or None)
            return await cursor.fetchall() if cursor.description is not None else []
        except self._psycopg.Error as wrong:
            raise self._fault(wrong) from wrong

    async def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Carry out a statement once for each of `rows`, all or none."""
        connection = await self._ready()
        try:
            async with connection.transaction(), connection.cursor() as cursor:
                await cursor.executemany(sql, rows)
        except self._psycopg.Error as wrong:
            raise self._fault(wrong) from wrong

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """All that is written inside, or nothing of it."""
        connection = await self._ready()
        try:
            async with connection.transaction():
                yield
        except self._psycopg.Error as wrong:
            raise self._fault(wrong) from wrong

    async def aclose(self) -> None:
        """Let go of the server."""
        connection, self._connection = self._connection, None
        if connection is not None and self._loop is asyncio.get_running_loop():
            await connection.close()

    async def _ready(self) -> Any:
        async with self._opening:
            here = asyncio.get_running_loop()
            if self._connection is None or self._connection.closed or self._loop is not here:
                self._connection, self._loop = await self._connect(), here
            return self._connection

    async def _connect(self) -> Any:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._psycopg.AsyncConnection.connect(self._url, autocommit=True)
        except (self._psycopg.Error, TimeoutError) as wrong:
            message = text("store.no_postgres", host=host_of(self._url), why=_words(wrong))
            raise UsageError(
                Failure(kind="usage", message=message, hint=text("store.check_url"), retryable=True)
            ) from wrong

    def _fault(self, wrong: Exception) -> DaikuError:
        message = text("store.postgres_failed", host=host_of(self._url), why=_words(wrong))
        return DaikuError(Failure(kind="internal", message=message, hint=text("store.check_url")))


def _library() -> Any:
    """psycopg, which is loaded when a database is opened: nobody else waits for it. Raises UsageError without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as wrong:
        raise UsageError(
            Failure(kind="usage", message=text("store.no_psycopg"), hint=text("store.install_postgres"))
        ) from wrong


def host_of(url: str) -> str:
    """The server that `url` names, without login: fit for a message."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'localhost'}{port}{parts.path}"


def _words(wrong: Exception) -> Text:
    """What the server or the library said, in one line, without a password."""
    if isinstance(wrong, TimeoutError):
        return text("store.no_answer", seconds=CONNECT_SECONDS)
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    return Text(_PASSWORD.sub("***", lines[0] if lines else type(wrong).__name__)[:300].rstrip("."))
