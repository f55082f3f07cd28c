"""A PostgreSQL database for code that awaits it: one connection, opened when first used and again when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from daiku.store.postgres_faults import CONNECT_SECONDS, check_address, fault, library, unreachable


class AsyncPostgres:
    """One connection in autocommit mode, opened again after a failure. Methods raise DaikuError, UsageError."""

    def __init__(self, url: str) -> None:
        check_address(url)
        self._url = url
        self._psycopg: Any = library()
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
            raise fault(self._url, wrong) from wrong

    async def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Carry out a statement once for each of `rows`, all or none."""
        connection = await self._ready()
        try:
            async with connection.transaction(), connection.cursor() as cursor:
                await cursor.executemany(sql, rows)
        except self._psycopg.Error as wrong:
            raise fault(self._url, wrong) from wrong

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """All that is written inside, or nothing of it."""
        connection = await self._ready()
        try:
            async with connection.transaction():
                yield
        except self._psycopg.Error as wrong:
            raise fault(self._url, wrong) from wrong

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
            raise unreachable(self._url, wrong) from wrong
