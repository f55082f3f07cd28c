"""Calls about one project of GitLab: reads are paged and tried again, what changes something is sent once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from urllib.parse import quote

from pydantic import JsonValue

from daiku.domain.items.forge import RETRIED, SHORT_WAIT, ForgeRefusal
from daiku.domain.items.item import ItemKey
from daiku.texts.text import text
from daiku.work.answers import AnyShape, one, refused, several
from daiku.work.gitlab.wire import Answer, Method, Query, Wire, unreadable
from daiku.work.source import Check, unchecked

PAUSES = (0.5, 1.0, 2.0)
"""Seconds before a read is tried again (R2.74)."""
PAGE = 100
MAX_PAGES = 100
"""Of one list; what is behind them is not read."""
_PROJECT = re.compile(r"[\w.+-]{1,255}(?:/[\w.+-]{1,255}){1,20}")
NOTHING: Query = {}
Sleep = Callable[[float], Awaitable[None]]


class Calls:
    """The calls about the project `repository`. Paths are below it, but those that begin with two slashes."""

    def __init__(
        self, wire: Wire, repository: str, sleep: Sleep = asyncio.sleep, check: Check = unchecked
    ) -> None:
        self._wire = wire
        self.repository = repository
        self._root = f"/projects/{quote(repository, safe='')}"
        self._sleep = sleep
        self._check = check

    def checked(self, check: Check) -> Calls:
        """The same, where `check` is called directly before something is changed."""
        return Calls(self._wire, self.repository, self._sleep, check)

    async def get(self, shape: type[AnyShape], path: str, query: Query = NOTHING) -> AnyShape | ForgeRefusal:
        """What `path` is."""
        answer = await self._read(path, query)
        return answer if isinstance(answer, ForgeRefusal) else _one(shape, answer.data)

    async def pages(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING
    ) -> AsyncIterator[tuple[AnyShape, ...] | ForgeRefusal]:
        """The list at `path`, a page at a time; a refusal ends it."""
        page = 1
        for _ in range(MAX_PAGES):
            answer = await self._read(path, {"per_page": PAGE, **query, "page": page})
            rows = answer if isinstance(answer, ForgeRefusal) else _several(shape, answer.data)
            yield rows
            if isinstance(answer, ForgeRefusal) or isinstance(rows, ForgeRefusal) or not answer.more:
                return
            page = answer.more

    async def every(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """The whole list at `path`."""
        found: list[AnyShape] = []
        async for rows in self.pages(shape, path, query):
            if isinstance(rows, ForgeRefusal):
                return rows
            found += rows
        return tuple(found)

    async def first(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """The first page of the list at `path`."""
        answer = await self._read(path, {"per_page": PAGE, **query})
        return answer if isinstance(answer, ForgeRefusal) else _several(shape, answer.data)

    async def change(
        self, method: Method, shape: type[AnyShape], path: str, data: Mapping[str, JsonValue]
    ) -> AnyShape | ForgeRefusal:
        """Change something. Nothing is tried again: whether a call without an answer was heard is looked up first."""
        if (wrong := self._no_project()) is not None:
            return wrong
        self._check()
        answer = await self._wire.call(method, self._path(path), NOTHING, dict(data))
        return answer if isinstance(answer, ForgeRefusal) else _one(shape, answer.data)

    async def tail(self, path: str, most: int) -> str | ForgeRefusal:
        """The last `most` characters of the text at `path`."""
        return await self._wire.tail(self._path(path), most)

    async def _read(self, path: str, query: Query) -> Answer | ForgeRefusal:
        if (wrong := self._no_project()) is not None:
            return wrong
        answer = await self._wire.call("get", self._path(path), query)
        for pause in PAUSES:
            if not isinstance(answer, ForgeRefusal):
                break
            is_short = 0 < answer.retry_after <= SHORT_WAIT
            if not (answer.kind in RETRIED or is_short):
                break
            await self._sleep(answer.retry_after if is_short else pause)
            answer = await self._wire.call("get", self._path(path), query)
        return answer

    def _no_project(self) -> ForgeRefusal | None:
        named = _PROJECT.fullmatch(self.repository)
        return None if named else refused("bad", text("gitlab.no_project", name=self.repository))

    def _path(self, path: str) -> str:
        return path[1:] if path.startswith("//") else self._root + path


def path_of(key: ItemKey) -> str:
    """Where an item is, below its project."""
    return f"/{'merge_requests' if key.kind == 'request' else 'issues'}/{key.name}"


def _one(shape: type[AnyShape], data: JsonValue) -> AnyShape | ForgeRefusal:
    found = one(shape, data)
    return unreadable() if found is None else found


def _several(shape: type[AnyShape], data: JsonValue) -> tuple[AnyShape, ...] | ForgeRefusal:
    found = several(shape, data)
    return unreadable() if found is None else found
