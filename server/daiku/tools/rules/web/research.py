"""Research: remove duplicate queries, rank and merge results, and format them for models and people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from daiku.domain.base import JsonObject
from daiku.domain.events import Event, MessageEvent, ToolResponse
from daiku.domain.messages import AssistantMessage
from daiku.domain.work.research import Finding, Research, SearchResult
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import NO_TEXT, Text, from_json, joined, text

MAX_QUERY = 400
"""Characters of a query."""
SNIPPET = 500
"""Characters that a search engine's own words about a page may have."""
PAGE_PART = 6000
"""Characters of an opened page that go into a finding."""
SOURCES_KEY = "sources"
"""Under this key the data of web/research hold what a person reads of it."""
_TRACKING = lazy(r"^(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref_src|igshid)$", re.IGNORECASE)


def one_line(text: str, limit: int = SNIPPET) -> str:
    """Visible text in one line, cut behind a word."""
    line = " ".join(strip_invisible(text).split())
    if len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0].rstrip() + " …"


def distinct_queries(queries: Iterable[str]) -> tuple[str, ...]:
    """The first three queries that say something different (R0.41, R0.46)."""
    from daiku.models.rules.replies.roleforms import MAX_QUERIES  # when used

    found: dict[str, str] = {}
    for query in queries:
        clean = one_line(query, MAX_QUERY)
        if clean:
            found.setdefault(clean.casefold(), clean)
    return tuple(found.values())[:MAX_QUERIES]


def page_identity(url: str) -> str:
    """What two addresses of one page have in common: no fragment, no tracking, no trailing slash."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    query = urlencode([(k, v) for k, v in parse_qsl(parts.query, True) if not _TRACKING.match(k)])
    host = parts.netloc.lower().removeprefix("www.")
    return urlunsplit(("", host, parts.path.rstrip("/"), query, ""))


def rank_results(
    source: str, hits: Iterable[tuple[str, str, str, float | None]], limit: int
) -> tuple[SearchResult, ...]:
    """Results from (url, title, text, the engine's score), each page once, best first.

    Scores are brought between 0 and 1; where the engine gives none they follow from the place.
    """
    kept: dict[str, tuple[str, str, str, float | None]] = {}
    for hit in hits:
        if hit[0].startswith(("http://", "https://")):
            kept.setdefault(page_identity(hit[0]), hit)
    given = [hit[3] for hit in kept.values() if hit[3] is not None]
    top = max((1.0, *given))
    made = [
        SearchResult(
            source=source,
            url=url,
            title=one_line(title, 200) or url,
            text=one_line(text),
            score=round(max(0.0, score / top) if score is not None else 1 / (1 + place / 4), 3),
        )
        for place, (url, title, text, score) in enumerate(kept.values())
    ]
    return tuple(sorted(made, key=lambda result: -result.score)[:limit])


def results_text(results: Iterable[SearchResult]) -> str:
    """Search results as a model reads them: numbered, each with its address."""
    return "\n".join(
        f"{number}. {r.title}\n   {r.url}" + (f"\n   {r.text}" if r.text else "")
        for number, r in enumerate(results, 1)
    )


def sources_text(
    queries: tuple[str, ...], findings: tuple[Finding, ...], problems: tuple[Text, ...] = ()
) -> Text:
    """What a person reads of findings: the sources by query, then what could not be looked at."""
    numbers = {finding.url: number for number, finding in enumerate(findings, 1)}
    groups: list[Text] = []
    for query in queries:
        own = [f for f in findings if f.query == query]
        rows = [f"- [{numbers[f.url]}] [{_label(f.title)}]({f.url})" for f in own]
        groups.append(joined("lines", [f"**{query}**", *(rows or [text("web.nothing_found")])]))
    notes = joined("lines", [text("roles.note", note=problem) for problem in problems])
    return joined("paragraphs", [*groups, notes])


def findings_text(sources: Text, findings: tuple[Finding, ...]) -> str:
    """Findings as a model reads them: the sources, then the text of each page."""
    pages = [
        f"[{number}] {f.title}\nSource: {f.url}\n\n{f.text}" for number, f in enumerate(findings, 1) if f.text
    ]
    return "\n\n---\n\n".join([sources, *pages])


def shown_sources(event: ToolResponse) -> Text:
    """What a person reads of the result of web/research; empty for other tools."""
    value = (event.data or {}).get(SOURCES_KEY) if event.tool == "web/research" else None
    return from_json("", value) if value is not None else NO_TEXT


def by_query(findings: Iterable[Finding]) -> Mapping[str, str]:
    """Query to what was found, each part with its address: the coder's `search_results` (R0.52)."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        found.setdefault(finding.query, []).append(f"{finding.title}\nSource: {finding.url}\n{finding.text}")
    return {query: "\n\n".join(parts) for query, parts in found.items()}


def queries_of(message: AssistantMessage | MessageEvent) -> tuple[str, ...]:
    """The questions that the calls of a message put to the web."""
    found: list[str] = []
    for call in message.calls:
        if call.tool == "web/search":
            found.append(str(call.args.get("query", "")))
        elif call.tool == "web/research" and isinstance(queries := call.args.get("queries"), list):
            found += [str(query) for query in queries]
    return distinct_queries(found)


def gather(so_far: Research, event: Event) -> Research:
    """Fold one more event of a run into its research. Only results that web tools really returned become
    findings; a page's text replaces the search engine's summary of it."""
    match event:
        case MessageEvent(role="assistant") if event.calls or event.opaque:
            said = event.opaque.get("daiku")
            named = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
            queries = distinct_queries((*so_far.queries, *queries_of(event), *named.get("queries", ())))
            return so_far.model_copy(
                update={"queries": queries, "ask_user": str(named.get("askUser") or so_far.ask_user)}
            )
        case ToolResponse(tool="web/search" | "web/research" | "web/fetch", ok=True, data=dict() as data):
            return so_far.model_copy(update={"results": _with(so_far.results, _found(event, data))})
        case _:
            return so_far


def _found(event: ToolResponse, data: JsonObject) -> tuple[Finding, ...]:
    if event.tool == "web/fetch":
        text = event.result.partition("\n\n")[2][:PAGE_PART]
        url, title = str(data.get("url", "")), str(data.get("title", ""))
        return (Finding(query="", url=url, title=title or url, text=text),)
    rows = data.get("results")
    return tuple(
        Finding(
            query=str(row.get("query", data.get("query", ""))),
            url=str(row.get("url", "")),
            title=str(row.get("title", "")),
            text=str(row.get("text", "")),
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    )


def _with(findings: tuple[Finding, ...], news: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Each page once, under the question that found it first, with the longest text of it."""
    kept = {page_identity(finding.url): finding for finding in findings}
    for new in news:
        old = kept.get(page_identity(new.url))
        if old is None:
            kept[page_identity(new.url)] = new
        elif len(new.text) > len(old.text):
            kept[page_identity(new.url)] = old.model_copy(update={"text": new.text})
    return tuple(kept.values())


_WORD = lazy(r"[A-Za-z][A-Za-z0-9.+#_-]*[A-Za-z0-9+#]|[A-Z]|[\u30a1-\u30ff]{2,}|[\u4e00-\u9fff]{2,}")
_COMMON = lazy(
    r"(?:an?|and|are|as|at|be|but|by|can|could|do|does|for|from|get|have|how|i|if|in|into|is|its?|just|let|make|me|my|need|new"
    r"|not|of|on|only|or|our|please|set|should|so|some|that|the|their|them|then|there|these|they|this|to|up|us|used?|using"
    r"|want|we|what|when|where|which|who|why|will|with|would|your?|add|create|implement|write|build|fix)",
    re.IGNORECASE,
)


def keywords(focus: str, limit: int = 8) -> str:
    """The words that a focus is about, joined by ", " (C0.19): no common words, each once, in order."""
    found: dict[str, str] = {}
    for match in _WORD.finditer(strip_invisible(focus)):
        word = match[0]
        if not _COMMON.fullmatch(word):
            found.setdefault(word.lower(), word)
    return ", ".join(list(found.values())[:limit])


def _label(title: str) -> str:
    """A title that cannot end its link."""
    return title.replace("[", "(").replace("]", ")")
