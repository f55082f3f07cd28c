"""Searching and reading: an engine of the settings, pages as text, over one road and one cache."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from daiku.domain.base import JsonObject
from daiku.domain.config import ResearchSettings
from daiku.domain.work.research import SearchResult
from daiku.tools.web.cache import Cache
from daiku.tools.web.engines import ENGINES, OTHERS, read
from daiku.tools.web.extract import Page, page_of
from daiku.tools.web.road import Request, Road, Trouble

_STATUS = {
    401: ": it wants a login",
    402: ": it wants to be paid",
    403: ": it does not let programs in",
    404: ": there is no such page",
    410: ": the page is gone",
    429: ": it has been asked too often",
    451: ": it may not be shown here",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to; `problem` says why there is nothing, and what to do."""

    engine: str
    results: tuple[SearchResult, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Web:
    """`environ` is where engines' keys are."""

    road: Road = field(default_factory=Road)
    cache: Cache = field(default_factory=Cache)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    async def search(self, query: str, limit: int, settings: ResearchSettings) -> Found:
        """What the engine of the settings finds. Never raises for what the web does."""
        engine = ENGINES[settings.engine]
        base = (settings.base_url or engine.base).rstrip("/")
        if not base:
            return Found(engine.name, problem="research.base_url has to say where your SearXNG is.")
        variable = settings.api_key_env or engine.key
        key = self.environ.get(variable, "").strip() if variable else ""
        if engine.key and not key:
            return Found(
                engine.name,
                problem=f"{engine.name} needs a key: put it into {variable}, or choose another engine.",
            )
        about = ("search", engine.name, base, query, str(limit))
        if (kept := self.cache.get(*about)) is not None:
            return _found(engine.name, kept)
        # An address of the person's own may well be on this machine.
        request = replace(engine.encode(base, query, limit, key), private=bool(settings.base_url))
        answer = await self.road.ask(request)
        if isinstance(answer, Trouble):
            return Found(
                engine.name, problem=f"{engine.name} was not reached: {answer.why}. {_otherwise(settings)}"
            )
        found = read(engine, answer, limit)
        if isinstance(found, str):
            return Found(engine.name, problem=found)
        if found:
            self.cache.put({"results": [result.model_dump() for result in found]}, *about)
        return Found(engine.name, found)

    async def page(self, url: str, follow: Callable[[str], bool] | None = None) -> Page | Trouble:
        """The page at `url` as text; redirects to other sites only where `follow` allows their host."""
        place = self.road.place(url)
        if isinstance(place, str):
            return Trouble(place)
        if (kept := self.cache.get("page", place.url)) is not None:
            return Page(
                str(kept["url"]),
                str(kept["title"]),
                str(kept["text"]),
                bool(kept["cut"]),
                bool(kept["by_proxy"]),
            )
        answer = await self.road.ask(Request(place.url), follow=follow)
        if isinstance(answer, Trouble):
            return answer
        if answer.status >= 400:
            return Trouble(f"the server answered {answer.status}{_STATUS.get(answer.status, '')}")
        page = await asyncio.to_thread(page_of, answer)
        if isinstance(page, str):
            return Trouble(page)
        value: JsonObject = {
            "url": page.url,
            "title": page.title,
            "text": page.text,
            "cut": page.cut,
            "by_proxy": page.by_proxy,
        }
        self.cache.put(value, "page", place.url)
        return page


def _found(engine: str, kept: JsonObject) -> Found:
    rows = kept.get("results")
    results = tuple(SearchResult.model_validate(row) for row in rows) if isinstance(rows, list) else ()
    return Found(engine, results)


def _otherwise(settings: ResearchSettings) -> str:
    if settings.base_url:
        return "Look at research.base_url."
    return f"Look at the network and the proxy settings, or {OTHERS}."
