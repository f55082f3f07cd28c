"""Atomic token counters that processes share: in memory, in a SQLite file, or in Redis."""

from __future__ import annotations

import asyncio
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, Failure
from daiku.store.sqlite import connect
from daiku.texts.text import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.asyncio import Redis

SCHEMA = "CREATE TABLE IF NOT EXISTS token_counters (name TEXT PRIMARY KEY, tokens INTEGER NOT NULL) STRICT;"
_ADD = (
    "INSERT INTO token_counters (name, tokens) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET tokens = tokens + excluded.tokens RETURNING tokens"
)
_TAKE = (
    "INSERT INTO token_counters (name, tokens) SELECT ?, ? WHERE ? <= ?"
    " ON CONFLICT (name) DO UPDATE SET tokens = tokens + excluded.tokens"
    " WHERE token_counters.tokens + excluded.tokens <= ? RETURNING tokens"
)
_TOTAL = "SELECT tokens FROM token_counters WHERE name = ?"
_TAKE_IN_REDIS = """
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
if total > tonumber(ARGV[2]) then
  redis.call('DECRBY', KEYS[1], ARGV[1])
  return -1
end
return total
"""
PREFIX = "daiku:tokens:"
REDIS_SECONDS = 5.0
"""Timeout in seconds for a response from Redis."""


class Counter(Protocol):
    """Token totals by name. Methods raise DaikuError if the store is unavailable."""

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        """Add `tokens` if the total stays within `most`. Return the new total, or None if nothing was added."""
        ...

    async def add(self, name: str, tokens: int) -> int:
        """Add `tokens` (negative to return them) without a limit. Return the new total."""
        ...

    async def total(self, name: str) -> int:
        """Return the current total."""
        ...


@dataclass(slots=True)
class MemoryCounter:
    """Token totals in memory, of this process only."""

    totals: dict[str, int] = field(default_factory=dict[str, int])

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        if self.totals.get(name, 0) + tokens > most:
            return None
        return await self.add(name, tokens)

    async def add(self, name: str, tokens: int) -> int:
        self.totals[name] = self.totals.get(name, 0) + tokens
        return self.totals[name]

    async def total(self, name: str) -> int:
        return self.totals.get(name, 0)


@dataclass(frozen=True, slots=True)
class SqliteCounter:
    """Token totals in a SQLite file.

    Each step is one statement, so that concurrent processes lose no update. The file is open only during a step, so
    there is nothing to close. Threads of one process take turns, as SQLite has no fair queue.
    """

    path: Path
    lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        return await asyncio.to_thread(self._execute, _TAKE, (name, tokens, tokens, most, most))

    async def add(self, name: str, tokens: int) -> int:
        return await asyncio.to_thread(self._execute, _ADD, (name, tokens)) or 0

    async def total(self, name: str) -> int:
        return await asyncio.to_thread(self._execute, _TOTAL, (name,)) or 0

    def _execute(self, sql: str, values: tuple[str | int, ...]) -> int | None:
        with self.lock, closing(connect(self.path, SCHEMA)) as database:
            rows = database.query(sql, values)  # reads all rows, as only then it is committed
        return int(rows[0][0]) if rows else None


@dataclass(frozen=True, slots=True)
class RedisCounter:
    """Token totals in Redis.

    Each step is one atomic command or script. It connects only during a step, so there is nothing to close and any
    event loop may use it.
    """

    url: str

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        total = await self._execute("eval", _TAKE_IN_REDIS, 1, PREFIX + name, tokens, most)
        return None if total < 0 else total

    async def add(self, name: str, tokens: int) -> int:
        return await self._execute("incrby", PREFIX + name, tokens)

    async def total(self, name: str) -> int:
        return int(await self._execute("get", PREFIX + name) or 0)

    async def _execute(self, command: str, *args: Any) -> Any:
        from redis.asyncio import Redis  # slow to import, and an optional dependency
        from redis.exceptions import RedisError  # as above

        connect_to = cast("Callable[..., Redis]", Redis.from_url)  # its further arguments are untyped
        try:
            async with connect_to(
                self.url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
            ) as redis:
                return await getattr(redis, command)(*args)
        except (RedisError, OSError) as error:
            message = text("guardrails.counter_away", place=self._host, what=type(error).__name__)
            hint = text("guardrails.counter_hint")
            raise DaikuError(Failure(kind="connection", message=message, hint=hint)) from error

    @property
    def _host(self) -> str:
        """Host name, without credentials."""
        return urlsplit(self.url).hostname or "localhost"


def open_counter(store: str | Path | None) -> Counter:
    """Return the counter for `store`: None for memory, a Redis URL, else the path of a SQLite file.

    Raises TypeError, ValueError.
    """
    if store is None:
        return MemoryCounter()
    if isinstance(store, Path):
        return SqliteCounter(store)
    if not isinstance(store, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not check types
        raise TypeError(f"store must be a path, a Redis URL or None, not {store!r}")
    scheme, separator, _ = store.partition("://")
    if not separator:
        return SqliteCounter(Path(store).expanduser())
    if scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f"store must be a path or a Redis URL (redis://…), not a {scheme} address")
    if find_spec("redis") is None:
        raise ValueError("store is a Redis URL, which needs the package redis: install daiku[redis]")
    return RedisCounter(store)
