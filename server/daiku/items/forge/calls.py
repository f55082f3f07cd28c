"""Calls of a forge's API about one repository: reads are paged and retried, changes are sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from pydantic import JsonValue, SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import RETRIED, SHORT_WAIT, ForgeRefusal
from daiku.items.forge.wire import ForgeAnswer, Method, Wire
from daiku.items.source import AnyShape, Check, Shape, build_refusal, no_check, parse_list, parse_one
from daiku.texts.text import text

T = TypeVar("T", bound=Shape)
Query: TypeAlias = Mapping[str, str | int]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
PAUSES = (0.5, 1.0, 2.0)
"""Seconds to wait before each retry of a read."""
PAGE = 100
MAX_PAGES = 100
"""Maximum pages of one list; a longer list is refused as too large."""
NOTHING: Query = {}


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """Access to a forge's API: `token` returns a repository's token, `sign` the headers with it.

    `root` is the path of the repository.
    """

    wire: Wire
    token: Callable[[str], Awaitable[SecretStr | ForgeRefusal]]
    sign: Callable[[str], Mapping[str, str]]
    repository: str
    root: str


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list. `unchanged`: the list is the same as when the forge returned the ETag."""

    rows: tuple[T, ...]
    etag: str = ""
    unchanged: bool = False


class RepositoryCalls:
    """The calls about one repository.

    A path is relative to it, unless it starts with two slashes. `check` runs directly before each change.
    """

    def __init__(self, access: ApiAccess, sleep: Sleep = asyncio.sleep, check: Check = no_check) -> None:
        self.repository = access.repository
        self.api_url = access.wire.api_url
        self.time = ""
        """The forge's time at its first answer."""
        self._access = access
        self._sleep = sleep
        self._check = check

    async def get(self, shape: type[AnyShape], path: str, query: Query = NOTHING) -> AnyShape | ForgeRefusal:
        """Read the object at `path`."""
        answer = await self._read(path, query)
        return answer if isinstance(answer, ForgeRefusal) else self.as_shape(shape, answer.data)

    async def get_pages(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING, *, etag: str = "", inside: str = ""
    ) -> AsyncIterator[ListPage[AnyShape] | ForgeRefusal]:
        """Yield the list at `path` page by page; a refusal ends it.

        `inside`: the field of a page that contains its rows.
        """
        count, params = 0, {"per_page": PAGE, **query}
        more = urlencode(params, quote_via=quote)
        for number in range(1, MAX_PAGES + 1):
            answer = await self._read(path, more, etag)
            if isinstance(answer, ForgeRefusal):
                yield answer
                return
            if answer.status == 304:
                yield ListPage((), etag, unchanged=True)
                return
            data = answer.data.get(inside) if inside and isinstance(answer.data, dict) else answer.data
            rows = parse_list(shape, data)
            yield self._access.wire.build_unreadable() if rows is None else ListPage(rows, answer.etag)
            if rows is None:
                return
            following = answer.more
            # A proxy may have dropped the paging headers.
            if following is None and len(rows) >= PAGE:
                following = urlencode({**params, "page": number + 1}, quote_via=quote)
            if not following:
                return
            count, more, etag = count + len(rows), following, ""
        yield build_refusal("too_large", text("forge.too_many", count=count))

    async def get_all(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING, *, inside: str = ""
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Read the complete list at `path`."""
        rows: list[AnyShape] = []
        async for page in self.get_pages(shape, path, query, inside=inside):
            if isinstance(page, ForgeRefusal):
                return page
            rows += page.rows
        return tuple(rows)

    async def first_page(
        self, shape: type[AnyShape], path: str, query: Query = NOTHING
    ) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Read the first page of the list at `path`."""
        async for page in self.get_pages(shape, path, query):
            return page if isinstance(page, ForgeRefusal) else page.rows
        return ()

    async def change(
        self, shape: type[AnyShape], method: Method, path: str, data: Mapping[str, JsonValue] | None = None
    ) -> AnyShape | ForgeRefusal:
        """Send one change, once: the caller looks up its result before sending it again."""
        token = await self._access.token(self.repository)
        if isinstance(token, ForgeRefusal):
            return token
        body = None if data is None else dict(data)
        self._check()
        secret = token.get_secret_value()
        answer = await self._access.wire.call(
            method, self._build_url(path), self._access.sign(secret), body, secret=secret
        )
        if isinstance(answer, ForgeRefusal):
            return answer
        # GitHub answers some changes with an empty body or a list.
        return self.as_shape(shape, answer.data if isinstance(answer.data, dict) else {})

    async def get_tail(self, path: str, most: int) -> str | ForgeRefusal:
        """Read the last `most` characters of the text at `path`."""
        answer = await self._read(path, NOTHING, tail=most)
        return answer if isinstance(answer, ForgeRefusal) else str(answer.data)

    async def _read(
        self, path: str, query: Query | str, etag: str = "", tail: int = 0
    ) -> ForgeAnswer | ForgeRefusal:
        encoded = query if isinstance(query, str) else urlencode(query, quote_via=quote)
        url = f"{self._build_url(path)}?{encoded}" if encoded else self._build_url(path)
        for pause in (*PAUSES, None):
            token = await self._access.token(self.repository)
            if isinstance(token, ForgeRefusal):
                return token
            secret = token.get_secret_value()
            headers = {**self._access.sign(secret), **({"if-none-match": etag} if etag else {})}
            answer = await self._access.wire.call("GET", url, headers, secret=secret, tail=tail)
            if not isinstance(answer, ForgeRefusal):
                self.time = self.time or answer.time
                return answer
            is_short = 0 < answer.retry_after <= SHORT_WAIT
            if pause is None or not (answer.kind in RETRIED or is_short):
                return answer
            await self._sleep(answer.retry_after if is_short else pause)
        raise AssertionError

    def _build_url(self, path: str) -> str:
        if "://" in path:
            return path
        place = path[1:] if path.startswith("//") else self._access.root + path
        return self._access.wire.api_url + place

    def as_shape(self, shape: type[AnyShape], data: JsonValue) -> AnyShape | ForgeRefusal:
        """Return `data` as `shape`; a refusal if it is not one."""
        parsed = parse_one(shape, data)
        return self._access.wire.build_unreadable() if parsed is None else parsed
