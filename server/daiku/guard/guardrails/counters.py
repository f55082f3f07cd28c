"""Counters of tokens that several processes share: in memory, in a SQLite file, in Redis; each step is atomic."""

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
"""How long Redis may take to answer."""


class Counter(Protocol):
    """Totals by name. Methods raise DaikuError where the store is out of reach."""

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        """Add `tokens` where the total stays within `most`; the total then, None where nothing was added."""
        ...

    async def add(self, name: str, tokens: int) -> int:
        """Add `tokens` (below 0: give back) whatever comes of it; the total then."""
        ...

    async def total(self, name: str) -> int:
        """The total now."""
        ...


@dataclass(slots=True)
class MemoryCounter:
    """Totals of this process."""

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
    """Totals in a SQLite file: each step is one statement, so that processes never lose one another's. The file is
    open only as long as a step takes: nothing is left to close. The threads of one process take turns: SQLite lets
    nobody wait in line, and one of many could wait longer than its time."""

    path: Path
    turn: Lock = field(default_factory=Lock, repr=False, compare=False)

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        return await asyncio.to_thread(self._ask, _TAKE, (name, tokens, tokens, most, most))

    async def add(self, name: str, tokens: int) -> int:
        return await asyncio.to_thread(self._ask, _ADD, (name, tokens)) or 0

    async def total(self, name: str) -> int:
        return await asyncio.to_thread(self._ask, _TOTAL, (name,)) or 0

    def _ask(self, sql: str, values: tuple[str | int, ...]) -> int | None:
        with self.turn, closing(connect(self.path, SCHEMA)) as database:
            rows = database.query(sql, values)  # to its last row: only then it is committed
        return int(rows[0][0]) if rows else None


@dataclass(frozen=True, slots=True)
class RedisCounter:
    """Totals in Redis: each step is one command or one script, which Redis carries out alone. Connected only as long
    as a step takes: nothing is left to close, and any loop may ask."""

    url: str

    async def take(self, name: str, tokens: int, most: int) -> int | None:
        total = await self._ask("eval", _TAKE_IN_REDIS, 1, PREFIX + name, tokens, most)
        return None if total < 0 else total

    async def add(self, name: str, tokens: int) -> int:
        return await self._ask("incrby", PREFIX + name, tokens)

    async def total(self, name: str) -> int:
        return int(await self._ask("get", PREFIX + name) or 0)

    async def _ask(self, command: str, *args: Any) -> Any:
        from redis.asyncio import Redis  # heavy, and an extra: only who counts in Redis has it
        from redis.exceptions import RedisError  # as above

        connect_to = cast("Callable[..., Redis]", Redis.from_url)  # it says nothing of its further arguments
        try:
            async with connect_to(
                self.url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
            ) as redis:
                return await getattr(redis, command)(*args)
        except (RedisError, OSError) as wrong:
            message = text("guardrails.counter_away", place=self._place, what=type(wrong).__name__)
            hint = text("guardrails.counter_hint")
            raise DaikuError(Failure(kind="connection", message=message, hint=hint)) from wrong

    @property
    def _place(self) -> str:
        """The address without a password."""
        return urlsplit(self.url).hostname or "localhost"


def counter_at(store: str | Path | None) -> Counter:
    """The counter that `store` names: None is memory, a Redis URL, else the path of a SQLite file. Raises TypeError,
    ValueError."""
    if store is None:
        return MemoryCounter()
    if isinstance(store, Path):
        return SqliteCounter(store)
    if not isinstance(store, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # whoever does not check types
        raise TypeError(f"store must be a path, a Redis URL or None, not {store!r}")
    scheme, found, _ = store.partition("://")
    if not found:
        return SqliteCounter(Path(store).expanduser())
    if scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f"store must be a path or a Redis URL (redis://…), not a {scheme} address")
    if find_spec("redis") is None:
        raise ValueError("store is a Redis URL, which needs the package redis: install daiku[redis]")
    return RedisCounter(store)
