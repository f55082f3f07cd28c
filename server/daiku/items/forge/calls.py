"""Calls of a forge's API about one repository: reads are paged and retried, changes are sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from pydantic import JsonValue, SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import RETRIED, SHORT_WAIT, ForgeRefusal
from daiku.items.answers import AnyShape, Shape, build_refusal, parse_list, parse_one
from daiku.items.forge.wire import Answer, Method, Wire
from daiku.items.source import Check, unchecked
from daiku.texts.text import text

T = TypeVar("T", bound=Shape)
Query: TypeAlias = Mapping[str, str | int]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
PAUSES = (0.5, 1.0, 2.0)
"""Seconds before a read is retried (R2.74)."""
PAGE = 100
MAX_PAGES = 100
"""Maximum pages of one list; a longer list is refused as too large."""
NOTHING: Query = {}


@dataclass(frozen=True, slots=True)
class Entrance:
    """How requests are made to a forge: `token` returns the token for a repository, `sign` the headers that carry it,
    and `root` is the path of the repository."""

    wire: Wire
    token: Callable[[str], Awaitable[SecretStr | ForgeRefusal]]
    sign: Callable[[str], Mapping[str, str]]
    repository: str
    root: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `unchanged`: the list is as it was when the forge gave the ETag."""

    rows: tuple[T, ...]
    etag: str = ""
    unchanged: bool = False


class Calls:
    """The calls about one repository. A path is relative to it, unless it begins with two slashes. `check` runs right
    before each change."""

    def __init__(self, entrance: Entrance, sleep: Sleep = asyncio.sleep, check: Check = unchecked) -> None:
        self.repository = entrance.repository
        self.api_url = entrance.wire.api_url
        self.time = ""
        """The forge's clock at its first answer."""
        self._entrance = entrance
        self._sleep = sleep
        self._check = check

    async def get(self, shape: type[AnyShape], path: str, query: Query = NOTHING) -> AnyShape | ForgeRefusal:
        """Read the object at `path`."""
        answer = await self._read(path, query)
        return answer if isinstance(answer, ForgeRefusal) else self.as_shape(shape, answer.data)

    async def pages(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING, *, etag: str = "", inside: str = ""
    ) -> AsyncIterator[Page[AnyShape] | ForgeRefusal]:
        """Read the list at `path` page by page; a refusal ends it. `inside`: the field of each page that has its rows."""
        count, asked = 0, {"per_page": PAGE, **query}
        more = urlencode(asked, quote_via=quote)
        for number in range(1, MAX_PAGES + 1):
            answer = await self._read(path, more, etag)
            if isinstance(answer, ForgeRefusal):
                yield answer
                return
            if answer.status == 304:
                yield Page((), etag, unchanged=True)
                return
            data = answer.data.get(inside) if inside and isinstance(answer.data, dict) else answer.data
            rows = parse_list(shape, data)
            yield self._entrance.wire.unreadable() if rows is None else Page(rows, answer.etag)
            if rows is None:
                return
            following = answer.more
            # A proxy may have dropped the headers.
            if following is None and len(rows) >= PAGE:
                following = urlencode({**asked, "page": number + 1}, quote_via=quote)
            if not following:
                return
            count, more, etag = count + len(rows), following, ""
        yield build_refusal("too_large", text("forge.too_many", count=count))

    async def every(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING, *, inside: str = ""
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Read the complete list at `path`."""
        found: list[AnyShape] = []
        async for page in self.pages(shape, path, query, inside=inside):
            if isinstance(page, ForgeRefusal):
                return page
            found += page.rows
        return tuple(found)

    async def first(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Read the first page of the list at `path`."""
        async for page in self.pages(shape, path, query):
            return page if isinstance(page, ForgeRefusal) else page.rows
        return ()

    async def change(
        self, shape: type[AnyShape], method: Method, path: str, data: Mapping[str, JsonValue] | None = None
    ) -> AnyShape | ForgeRefusal:
        """Send one change, once: the caller looks for its result before it is sent again."""
        token = await self._entrance.token(self.repository)
        if isinstance(token, ForgeRefusal):
            return token
        body = None if data is None else dict(data)
        self._check()
        secret = token.get_secret_value()
        answer = await self._entrance.wire.call(
            method, self._url(path), self._entrance.sign(secret), body, secret=secret
        )
        if isinstance(answer, ForgeRefusal):
            return answer
        # GitHub answers some changes with nothing, and some with a list.
        return self.as_shape(shape, answer.data if isinstance(answer.data, dict) else {})

    async def tail(self, path: str, most: int) -> str | ForgeRefusal:
        """Read the last `most` characters of the text at `path`."""
        answer = await self._read(path, NOTHING, tail=most)
        return answer if isinstance(answer, ForgeRefusal) else str(answer.data)

    async def _read(
        self, path: str, query: Query | str, etag: str = "", tail: int = 0
    ) -> Answer | ForgeRefusal:
        asked = query if isinstance(query, str) else urlencode(query, quote_via=quote)
        url = f"{self._url(path)}?{asked}" if asked else self._url(path)
        for pause in (*PAUSES, None):
            token = await self._entrance.token(self.repository)
            if isinstance(token, ForgeRefusal):
                return token
            secret = token.get_secret_value()
            headers = {**self._entrance.sign(secret), **({"if-none-match": etag} if etag else {})}
            answer = await self._entrance.wire.call("GET", url, headers, secret=secret, tail=tail)
            if not isinstance(answer, ForgeRefusal):
                self.time = self.time or answer.time
                return answer
            is_short = 0 < answer.retry_after <= SHORT_WAIT
            if pause is None or not (answer.kind in RETRIED or is_short):
                return answer
            await self._sleep(answer.retry_after if is_short else pause)
        raise AssertionError

    def _url(self, path: str) -> str:
        if "://" in path:
            return path
        place = path[1:] if path.startswith("//") else self._entrance.root + path
        return self._entrance.wire.api_url + place

    def as_shape(self, shape: type[AnyShape], data: JsonValue) -> AnyShape | ForgeRefusal:
        """Return `data` as `shape`; a refusal if it is not one."""
        found = parse_one(shape, data)
        return self._entrance.wire.unreadable() if found is None else found
