"""Async PostgreSQL database: one connection, opened on first use and reopened when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from daiku.store.postgres_faults import (
    CONNECT_SECONDS,
    build_connection_error,
    build_statement_error,
    check_address,
    load_psycopg,
)


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
