"""Search engines and pages of the web, with one HTTP client and one cache."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from types import MappingProxyType
from typing import Any, assert_never
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import JsonObject
from daiku.domain.config import ResearchSettings
from daiku.domain.work.research import SearchResult
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.rules.web.research import rank_results
from daiku.tools.web.cache import Cache
from daiku.tools.web.extract import Page, page_of
from daiku.tools.web.markup import EndTag, StartTag, TextToken, tokens
from daiku.tools.web.public_web import FetchProblem, FetchRequest, FetchResponse, PublicWeb


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. `base` is its public address, "" where the person has to give one; `key` the
    variable that usually holds its key, "" where it needs none. `decode` answers with what is wrong
    as a text."""

    name: str
    base: str
    key: str
    encode: Callable[[str, str, int, str], FetchRequest]
    """(base, query, limit, key) to the request."""
    decode: Callable[[FetchResponse, int], tuple[SearchResult, ...] | Text]
    help: Text = NO_TEXT
    """What to do where it refuses."""


# -- DuckDuckGo: a page for people ---------------------------------------------------------


def _ask_duckduckgo(base: str, query: str, _limit: int, _key: str) -> FetchRequest:
    form = urlencode({"q": query}).encode()
    kind = {"content-type": "application/x-www-form-urlencoded", "referer": f"{base}/"}
    return FetchRequest(f"{base}/html/", "POST", kind, form)


def _read_duckduckgo(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    page = answer.body.decode("utf-8", "replace")
    hits = _hits_of(page)
    if not hits and (answer.status == 202 or "anomaly" in page or "bots use DuckDuckGo" in page):
        return text("web.suspects_robot")
    if not hits and "no-results" not in page and "no results" not in page.lower():
        return text("web.no_list")
    return rank_results("duckduckgo", ((_behind(hit.url), hit.title, hit.text, None) for hit in hits), limit)


def _behind(url: str) -> str:
    """The address that a link of a result page leads to; "" for an advertisement."""
    whole = urljoin("https://duckduckgo.com/", url)
    parts = urlsplit(whole)
    if not (parts.hostname or "").endswith("duckduckgo.com"):
        return whole
    return parse_qs(parts.query).get("uddg", [""])[0] if parts.path.startswith("/l/") else ""


@dataclass(slots=True)
class _Hit:
    url: str
    title: str = ""
    text: str = ""


_TITLES = {"result__a", "result-link"}
_TEXTS = {"result__snippet", "result-snippet"}


def _hits_of(html: str) -> list[_Hit]:
    """Titles, links and snippets of a result page, its plain and its lite form."""
    hits: list[_Hit] = []
    into = until = ""
    for token in tokens(html):
        match token:
            case StartTag(tag, attributes):
                names = set(attributes.get("class", "").split())
                if names & _TITLES and attributes.get("href"):
                    hits.append(_Hit(attributes["href"]))
                    into, until = "title", tag
                elif names & _TEXTS and hits and not hits[-1].text:
                    into, until = "text", tag
            case EndTag(tag):
                if tag == until:
                    into = until = ""
            case TextToken(text):
                if into == "title":
                    hits[-1].title += text
                elif into == "text":
                    hits[-1].text += text
            case _:
                assert_never(token)
    return hits


# -- Brave, Tavily, SearXNG: JSON ----------------------------------------------------------


def _ask_brave(base: str, query: str, limit: int, key: str) -> FetchRequest:
    asked = urlencode({"q": query, "count": limit, "text_decorations": 0})
    headers = {"accept": "application/json", "x-subscription-token": key}
    return FetchRequest(f"{base}/res/v1/web/search?{asked}", headers=headers)


def _read_brave(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    web = _object(answer).get("web")
    hits = _entries(web.get("results") if isinstance(web, dict) else None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]  # JSON
    return rank_results(
        "brave", ((h.text("url"), h.text("title"), h.text("description"), None) for h in hits), limit
    )


def _ask_tavily(base: str, query: str, limit: int, key: str) -> FetchRequest:
    body = json.dumps({"query": query, "max_results": limit, "search_depth": "basic"}).encode()
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "authorization": f"Bearer {key}",
    }
    return FetchRequest(f"{base}/search", "POST", headers, body)


def _read_tavily(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    hits = _entries(_object(answer).get("results"))
    rows = ((h.text("url"), h.text("title"), h.text("content"), h.number("score")) for h in hits)
    return rank_results("tavily", rows, limit)


def _ask_searxng(base: str, query: str, _limit: int, key: str) -> FetchRequest:
    headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    return FetchRequest(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers)


def _read_searxng(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    whole = _object(answer)
    hits = tuple(_entries(whole.get("results")))
    silent = whole.get("unresponsive_engines")
    if not hits and isinstance(silent, list) and silent:
        return text("web.engines_silent", what=json.dumps(silent)[:200])
    rows = ((h.text("url"), h.text("title"), h.text("content"), h.number("score")) for h in hits)
    return rank_results("searxng", rows, limit)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One element of an engine's list, whatever is in it."""

    data: Mapping[str, Any]

    def text(self, key: str) -> str:
        value = self.data.get(key)
        return unescape(_without_tags(value)) if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without_tags(text: str) -> str:
    for tag in ("strong", "b", "em", "mark"):
        text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    return text


def _object(answer: FetchResponse) -> Mapping[str, Any]:
    """The JSON object of an answer. Raises ValueError."""
    value = json.loads(answer.body)
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004  # like any other JSON that is not the engine's
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON from outside


def _entries(value: object) -> Iterator[_Entry]:
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]  # JSON from outside
            if isinstance(item, dict):
                yield _Entry(item)  # pyright: ignore[reportUnknownArgumentType]  # likewise


OTHERS = text("web.set_other_engine")
ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        engine.name: engine
        for engine in (
            Engine(
                "duckduckgo", "https://html.duckduckgo.com", "", _ask_duckduckgo, _read_duckduckgo,
                text("web.wait_or", otherwise=OTHERS),
            ),
            Engine(
                "brave", "https://api.search.brave.com", "BRAVE_API_KEY", _ask_brave, _read_brave,
                text("web.look_at_key"),
            ),
            Engine(
                "tavily", "https://api.tavily.com", "TAVILY_API_KEY", _ask_tavily, _read_tavily,
                text("web.look_at_key"),
            ),
            Engine(
                "searxng", "", "", _ask_searxng, _read_searxng,
                text("web.allow_json"),
            ),
        )
    }
)  # fmt: skip


def read(engine: Engine, answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    """The results of an answer, best first, or what is wrong with it."""
    if answer.status >= 400:
        return joined(
            "sentences", [text("web.refused", engine=engine.name, status=answer.status), engine.help]
        )
    try:
        found = engine.decode(answer, limit)
    except ValueError:
        return joined("sentences", [text("web.not_results", engine=engine.name), engine.help])
    if not isinstance(found, str):
        return found
    return joined("sentences", [text("web.sentence", what=found), engine.help])


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
