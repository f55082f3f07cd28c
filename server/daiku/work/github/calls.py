"""Calls of GitHub's API: reads are tried again, paged and asked for changes only; what changes something is sent once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import JsonValue, SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import RETRIED, SHORT_WAIT, ForgeRefusal
from daiku.texts.text import text
from daiku.work.answers import AnyShape, Shape, one, refused, several
from daiku.work.github.wire import Answer, Method, Wire, unreadable
from daiku.work.source import Check, unchecked

T = TypeVar("T", bound=Shape)
PAUSES = (0.5, 2.0)
"""Seconds before a read is tried again."""
PAGE = 100
MAX_PAGES = 30
"""Of one list; a longer one is refused as too large."""
_REPOSITORY = re.compile(r"(?!\.)[A-Za-z0-9_.-]{1,100}/(?!\.\.?$)[A-Za-z0-9_.-]{1,100}")


class Tokens(Protocol):
    """Where the token for a repository comes from, and whose it is."""

    async def token(self, repository: str) -> SecretStr | ForgeRefusal: ...

    async def login(self) -> str | ForgeRefusal | None:
        """Who we are, where that is known without asking with the token."""
        ...

    async def may_push(self, repository: str) -> bool | None:
        """Whether the token may push, where that is known without asking the repository."""
        ...


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """The first page of a list, and where the next one is."""

    rows: tuple[T, ...]
    more: str
    etag: str


def repository_path(repository: str) -> str | None:
    """The path of a repository; None where that is no name of one."""
    return f"/repos/{repository}" if _REPOSITORY.fullmatch(repository) else None


def word(part: str) -> str:
    """A word as part of a path or a query: labels may hold whatever there is."""
    return quote(part, safe="")


class Calls:
    """The calls for one repository."""

    def __init__(
        self,
        wire: Wire,
        tokens: Tokens,
        repository: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        check: Check = unchecked,
    ) -> None:
        self.repository = repository
        self.root = f"/repos/{repository}"
        self._wire = wire
        self._tokens = tokens
        self._sleep = sleep
        self._check = check
        self.time = ""
        """The forge's clock when it answered first."""

    def checked(self, check: Check) -> Calls:
        """The same, where `check` is called directly before something is changed."""
        return Calls(self._wire, self._tokens, self.repository, self._sleep, check)

    async def get(self, shape: type[AnyShape], path: str) -> AnyShape | ForgeRefusal:
        """What `path` is."""
        answer = await self._ask(path)
        return answer if isinstance(answer, ForgeRefusal) else _as(shape, answer.data)

    async def pages(self, shape: type[AnyShape], path: str) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Every row of a list."""
        mark = "&" if "?" in path else "?"
        return await self.rest(shape, f"{path}{mark}per_page={PAGE}")

    async def rest(self, shape: type[AnyShape], path: str) -> tuple[AnyShape, ...] | ForgeRefusal:
        """Every row of a list from the page at `path` on."""
        found: list[AnyShape] = []
        for _ in range(MAX_PAGES):
            if not path:
                return tuple(found)
            answer = await self._ask(path)
            if isinstance(answer, ForgeRefusal):
                return answer
            rows = _rows(shape, answer.data)
            if isinstance(rows, ForgeRefusal):
                return rows
            found += rows
            path = answer.more
        return ForgeRefusal(kind="too_large", message=text("github.too_many", count=len(found)))

    async def changed(
        self, shape: type[AnyShape], path: str, etag: str
    ) -> Page[AnyShape] | ForgeRefusal | None:
        """The first page of a list; None where it is what it was at `etag`, which costs nothing of the hourly limit."""
        answer = await self._ask(path, etag)
        if isinstance(answer, ForgeRefusal):
            return answer
        if answer.status == 304:
            return None
        rows = _rows(shape, answer.data)
        return rows if isinstance(rows, ForgeRefusal) else Page(rows, answer.more, answer.etag)

    async def send(
        self, shape: type[AnyShape], method: Method, path: str, data: JsonValue = None
    ) -> AnyShape | ForgeRefusal:
        """Change something. It is sent once: whoever calls looks at what became of it before it is sent again."""
        token = await self._tokens.token(self.repository)
        if isinstance(token, ForgeRefusal):
            return token
        self._check()
        answer = await self._wire.call(method, path, token=token.get_secret_value(), data=data)
        return answer if isinstance(answer, ForgeRefusal) else _as(shape, answer.data)

    async def query(
        self, shape: type[AnyShape], words: str, **variables: JsonValue
    ) -> AnyShape | ForgeRefusal:
        """A question or a change in GraphQL, sent once."""

        class Reply(Shape):
            data: JsonValue = None
            errors: JsonValue = None

        reply = await self.send(
            Reply, "POST", graphql_url(self._wire.api_url), {"query": words, "variables": variables}
        )
        if isinstance(reply, ForgeRefusal):
            return reply
        return refused("bad", text("github.unreadable")) if reply.errors else _as(shape, reply.data)

    async def login(self) -> str | ForgeRefusal:
        """Who we are."""
        known = await self._tokens.login()
        if known is not None:
            return known

        class Viewer(Shape):
            login: str

        class Whose(Shape):
            viewer: Viewer

        found = await self.get(Viewer, "/user")
        if isinstance(found, ForgeRefusal) and found.kind in {"forbidden", "unauthorized", "gone"}:
            # A token that a workflow or an App was given belongs to no user, and is asked about in this way only.
            whose = await self.query(Whose, "query { viewer { login } }")
            found = whose if isinstance(whose, ForgeRefusal) else whose.viewer
        return found if isinstance(found, ForgeRefusal) else found.login

    async def may_push(self) -> bool | None:
        return await self._tokens.may_push(self.repository)

    async def _ask(self, path: str, etag: str = "") -> Answer | ForgeRefusal:
        for pause in (*PAUSES, None):
            token = await self._tokens.token(self.repository)
            if isinstance(token, ForgeRefusal):
                return token
            answer = await self._wire.call("GET", path, token=token.get_secret_value(), etag=etag)
            if not isinstance(answer, ForgeRefusal):
                self.time = self.time or answer.time
                return answer
            is_short = 0 < answer.retry_after <= SHORT_WAIT
            if pause is None or not (answer.kind in RETRIED or is_short):
                return answer
            await self._sleep(answer.retry_after if is_short else pause)
        raise AssertionError


def graphql_url(api_url: str) -> str:
    """Where GraphQL is: beside the API of github.com, and elsewhere where an instance has it."""
    parts = urlsplit(api_url)
    path = "/api/graphql" if parts.path.rstrip("/") == "/api/v3" else f"{parts.path.rstrip('/')}/graphql"
    return parts._replace(path=path, query="", fragment="").geturl()


def _as(shape: type[AnyShape], data: JsonValue) -> AnyShape | ForgeRefusal:
    """GitHub answers some changes with nothing, and some with a list."""
    found = one(shape, data if isinstance(data, dict) else {})
    return unreadable() if found is None else found


def _rows(shape: type[AnyShape], data: JsonValue) -> tuple[AnyShape, ...] | ForgeRefusal:
    found = several(shape, data)
    return unreadable() if found is None else found
