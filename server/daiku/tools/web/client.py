"""Search engines and web pages, with one HTTP client and one cache."""

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
from daiku.tools.web.cache import WebCache
from daiku.tools.web.extract import WebPage, build_page
from daiku.tools.web.markup import EndTag, StartTag, TextToken, tokenize
from daiku.tools.web.public_web import FetchProblem, FetchRequest, FetchResponse, PublicWeb


@dataclass(frozen=True, slots=True)
class WebSearchEngine:
    """A search engine.

    `base`: its public URL, "" if the user must configure one; `key`: the variable that usually has its API
    key, "" if it needs none. `decode` returns the results, or the problem as a text.
    """

    name: str
    base: str
    key: str
    encode: Callable[[str, str, int, str], FetchRequest]
    """(base, query, limit, key) to the request."""
    decode: Callable[[FetchResponse, int], tuple[SearchResult, ...] | Text]
    help: Text = NO_TEXT
    """What to do if the engine rejects requests."""


# -- DuckDuckGo: an HTML page --------------------------------------------------------------


def _ask_duckduckgo(base: str, query: str, _limit: int, _key: str) -> FetchRequest:
    form = urlencode({"q": query}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded", "referer": f"{base}/"}
    return FetchRequest(f"{base}/html/", "POST", headers, form)


def _read_duckduckgo(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    page = answer.body.decode("utf-8", "replace")
    hits = _parse_hits(page)
    if not hits and (answer.status == 202 or "anomaly" in page or "bots use DuckDuckGo" in page):
        return text("web.suspects_robot")
    if not hits and "no-results" not in page and "no results" not in page.lower():
        return text("web.no_list")
    return rank_results(
        "duckduckgo", ((_resolve_redirect(hit.url), hit.title, hit.text, None) for hit in hits), limit
    )


def _resolve_redirect(url: str) -> str:
    """Return the target of a link on a result page; "" for an advertisement."""
    absolute = urljoin("https://duckduckgo.com/", url)
    parts = urlsplit(absolute)
    if not (parts.hostname or "").endswith("duckduckgo.com"):
        return absolute
    return parse_qs(parts.query).get("uddg", [""])[0] if parts.path.startswith("/l/") else ""


@dataclass(slots=True)
class _PageHit:
    url: str
    title: str = ""
    text: str = ""


_TITLES = {"result__a", "result-link"}
_TEXTS = {"result__snippet", "result-snippet"}


def _parse_hits(html: str) -> list[_PageHit]:
    """Parse titles, links, and snippets of a result page, in its full or its lite form."""
    hits: list[_PageHit] = []
    field_name = end_tag = ""
    for token in tokenize(html):
        match token:
            case StartTag(tag, attributes):
                names = set(attributes.get("class", "").split())
                if names & _TITLES and attributes.get("href"):
                    hits.append(_PageHit(attributes["href"]))
                    field_name, end_tag = "title", tag
                elif names & _TEXTS and hits and not hits[-1].text:
                    field_name, end_tag = "text", tag
            case EndTag(tag):
                if tag == end_tag:
                    field_name = end_tag = ""
            case TextToken(text):
                if field_name == "title":
                    hits[-1].title += text
                elif field_name == "text":
                    hits[-1].text += text
            case _:
                assert_never(token)
    return hits


# -- Brave, Tavily, SearXNG: JSON ----------------------------------------------------------


def _ask_brave(base: str, query: str, limit: int, key: str) -> FetchRequest:
    query_string = urlencode({"q": query, "count": limit, "text_decorations": 0})
    headers = {"accept": "application/json", "x-subscription-token": key}
    return FetchRequest(f"{base}/res/v1/web/search?{query_string}", headers=headers)


def _read_brave(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    web = _parse_object(answer).get("web")
    hits = _iterate_entries(web.get("results") if isinstance(web, dict) else None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]  # JSON
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
    hits = _iterate_entries(_parse_object(answer).get("results"))
    rows = ((h.text("url"), h.text("title"), h.text("content"), h.number("score")) for h in hits)
    return rank_results("tavily", rows, limit)


def _ask_searxng(base: str, query: str, _limit: int, key: str) -> FetchRequest:
    headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    return FetchRequest(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers)


def _read_searxng(answer: FetchResponse, limit: int) -> tuple[SearchResult, ...] | Text:
    parsed = _parse_object(answer)
    hits = tuple(_iterate_entries(parsed.get("results")))
    unresponsive = parsed.get("unresponsive_engines")
    if not hits and isinstance(unresponsive, list) and unresponsive:
        return text("web.engines_silent", what=json.dumps(unresponsive)[:200])
    rows = ((h.text("url"), h.text("title"), h.text("content"), h.number("score")) for h in hits)
    return rank_results("searxng", rows, limit)


@dataclass(frozen=True, slots=True)
class _ResultEntry:
    """One element of an engine's result list, not validated."""

    data: Mapping[str, Any]

    def text(self, key: str) -> str:
        value = self.data.get(key)
        return unescape(_strip_tags(value)) if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _strip_tags(text: str) -> str:
    for tag in ("strong", "b", "em", "mark"):
        text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    return text


def _parse_object(answer: FetchResponse) -> Mapping[str, Any]:
    """Return the JSON object of a response. Raises ValueError."""
    value = json.loads(answer.body)
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004  # like any other JSON that is not the engine's
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON from outside


def _iterate_entries(value: object) -> Iterator[_ResultEntry]:
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]  # JSON from outside
            if isinstance(item, dict):
                yield _ResultEntry(item)  # pyright: ignore[reportUnknownArgumentType]  # likewise


OTHER_ENGINES = text("web.set_other_engine")
ENGINES: Mapping[str, WebSearchEngine] = MappingProxyType(
    {
        engine.name: engine
        for engine in (
            WebSearchEngine(
                "duckduckgo", "https://html.duckduckgo.com", "", _ask_duckduckgo, _read_duckduckgo,
                text("web.wait_or", otherwise=OTHER_ENGINES),
            ),
            WebSearchEngine(
                "brave", "https://api.search.brave.com", "BRAVE_API_KEY", _ask_brave, _read_brave,
                text("web.look_at_key"),
            ),
            WebSearchEngine(
                "tavily", "https://api.tavily.com", "TAVILY_API_KEY", _ask_tavily, _read_tavily,
                text("web.look_at_key"),
            ),
            WebSearchEngine(
                "searxng", "", "", _ask_searxng, _read_searxng,
                text("web.allow_json"),
            ),
        )
    }
)  # fmt: skip


def parse_results(
    engine: WebSearchEngine, answer: FetchResponse, limit: int
) -> tuple[SearchResult, ...] | Text:
    """Return the results of a response, the best first, or the problem."""
    if answer.status >= 400:
        return joined(
            "sentences", [text("web.refused", engine=engine.name, status=answer.status), engine.help]
        )
    try:
        results = engine.decode(answer, limit)
    except ValueError:
        return joined("sentences", [text("web.not_results", engine=engine.name), engine.help])
    if not isinstance(results, str):
        return results
    return joined("sentences", [text("web.sentence", what=results), engine.help])


_STATUS_MEANINGS = {
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
    """The results of a search; `problem`: why there are none, and what to do."""

    engine: str
    results: tuple[SearchResult, ...] = ()
    problem: Text = NO_TEXT


@dataclass(frozen=True, slots=True)
class Web:
    """Access to the web. `environ` contains the API keys of engines."""

    http: PublicWeb = field(default_factory=PublicWeb)
    cache: WebCache = field(default_factory=WebCache)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    async def search(self, query: str, limit: int, settings: ResearchSettings) -> SearchOutcome:
        """Search with the configured engine. Never raises for failures of the web."""
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
        cache_key = ("search", engine.name, base, query, str(limit))
        if (cached := self.cache.get(*cache_key)) is not None:
            return _restore_outcome(engine.name, cached)
        # A configured URL may be on this machine.
        request = replace(engine.encode(base, query, limit, key), private=bool(settings.base_url))
        answer = await self.http.fetch(request)
        if isinstance(answer, FetchProblem):
            return SearchOutcome(
                engine.name,
                problem=text(
                    "web.not_reached",
                    engine=engine.name,
                    why=answer.why,
                    otherwise=_suggest_alternative(settings),
                ),
            )
        results = parse_results(engine, answer, limit)
        if isinstance(results, str):
            return SearchOutcome(engine.name, problem=results)
        if results:
            self.cache.put({"results": [result.model_dump() for result in results]}, *cache_key)
        return SearchOutcome(engine.name, results)

    async def read_page(
        self, url: str, follow: Callable[[str], bool] | None = None
    ) -> WebPage | FetchProblem:
        """Return the page at `url` as text. Redirects to other sites need `follow` to allow the host."""
        place = self.http.check_url(url)
        if isinstance(place, str):
            return FetchProblem(place)
        if (cached := self.cache.get("page", place.url)) is not None:
            return WebPage(
                str(cached["url"]),
                str(cached["title"]),
                str(cached["text"]),
                bool(cached["cut"]),
                bool(cached["by_proxy"]),
            )
        answer = await self.http.fetch(FetchRequest(place.url), follow=follow)
        if isinstance(answer, FetchProblem):
            return answer
        if answer.status >= 400:
            return FetchProblem(
                text("web.status", status=answer.status, meaning=_STATUS_MEANINGS.get(answer.status, NO_TEXT))
            )
        page = await asyncio.to_thread(build_page, answer)
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


def _restore_outcome(engine: str, cached: JsonObject) -> SearchOutcome:
    rows = cached.get("results")
    results = tuple(SearchResult.model_validate(row) for row in rows) if isinstance(rows, list) else ()
    return SearchOutcome(engine, results)


def _suggest_alternative(settings: ResearchSettings) -> Text:
    if settings.base_url:
        return text("web.look_at_base_url")
    return text("web.look_at_network", otherwise=OTHER_ENGINES)
