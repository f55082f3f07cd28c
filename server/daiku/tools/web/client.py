"""Search the web and read pages as text, with one HTTP client and one cache."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import JsonObject
from daiku.domain.config import ResearchSettings
from daiku.domain.work.research import SearchResult
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.web.cache import Cache
from daiku.tools.web.engines import ENGINES, OTHERS, read
from daiku.tools.web.extract import Page, page_of
from daiku.tools.web.public_web import FetchProblem, FetchRequest, PublicWeb

_STATUS = {
    401: text("web.login"),
    402: text("web.payment"),
    403: text("web.no_programs"),
    404: text("web.no_page"),
    410: text("web.page_gone"),
    429: text("web.too_often"),
    451: text("web.may_not_show"),
}


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search came to; `problem` says why there is nothing, and what to do."""

    engine: str
    results: tuple[SearchResult, ...] = ()
    problem: Text = NO_TEXT


@dataclass(frozen=True, slots=True)
class Web:
    """`environ` is where engines' keys are."""

    road: PublicWeb = field(default_factory=PublicWeb)
    cache: Cache = field(default_factory=Cache)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    async def search(self, query: str, limit: int, settings: ResearchSettings) -> SearchOutcome:
        """What the engine of the settings finds. Never raises for what the web does."""
        engine = ENGINES[settings.engine]
        base = (settings.base_url or engine.base).rstrip("/")
        if not base:
            return SearchOutcome(engine.name, problem=text("web.say_where_searxng"))
        variable = settings.api_key_env or engine.key
        key = self.environ.get(variable, "").strip() if variable else ""
        if engine.key and not key:
            return SearchOutcome(
                engine.name, problem=text("web.needs_key", engine=engine.name, variable=variable)
            )
        about = ("search", engine.name, base, query, str(limit))
        if (kept := self.cache.get(*about)) is not None:
            return _found(engine.name, kept)
        # An address of the person's own may well be on this machine.
        request = replace(engine.encode(base, query, limit, key), private=bool(settings.base_url))
        answer = await self.road.ask(request)
        if isinstance(answer, FetchProblem):
            return SearchOutcome(
                engine.name,
                problem=text(
                    "web.not_reached", engine=engine.name, why=answer.why, otherwise=_otherwise(settings)
                ),
            )
        found = read(engine, answer, limit)
        if isinstance(found, str):
            return SearchOutcome(engine.name, problem=found)
        if found:
            self.cache.put({"results": [result.model_dump() for result in found]}, *about)
        return SearchOutcome(engine.name, found)

    async def page(self, url: str, follow: Callable[[str], bool] | None = None) -> Page | FetchProblem:
        """The page at `url` as text; redirects to other sites only where `follow` allows their host."""
        place = self.road.place(url)
        if isinstance(place, str):
            return FetchProblem(place)
        if (kept := self.cache.get("page", place.url)) is not None:
            return Page(
                str(kept["url"]),
                str(kept["title"]),
                str(kept["text"]),
                bool(kept["cut"]),
                bool(kept["by_proxy"]),
            )
        answer = await self.road.ask(FetchRequest(place.url), follow=follow)
        if isinstance(answer, FetchProblem):
            return answer
        if answer.status >= 400:
            return FetchProblem(
                text("web.status", status=answer.status, meaning=_STATUS.get(answer.status, NO_TEXT))
            )
        page = await asyncio.to_thread(page_of, answer)
        if isinstance(page, str):
            return FetchProblem(page)
        value: JsonObject = {
            "url": page.url,
            "title": page.title,
            "text": page.text,
            "cut": page.cut,
            "by_proxy": page.by_proxy,
        }
        self.cache.put(value, "page", place.url)
        return page


def _found(engine: str, kept: JsonObject) -> SearchOutcome:
    rows = kept.get("results")
    results = tuple(SearchResult.model_validate(row) for row in rows) if isinstance(rows, list) else ()
    return SearchOutcome(engine, results)


def _otherwise(settings: ResearchSettings) -> Text:
    if settings.base_url:
        return text("web.look_at_base_url")
    return text("web.look_at_network", otherwise=OTHERS)
