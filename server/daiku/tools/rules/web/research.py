"""Web research: remove duplicate queries, rank and merge results, and format them for models and users."""

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
MAX_SNIPPET = 500
"""Characters of a search engine's summary of a page."""
MAX_KEYWORDS = 8
"""Maximum number of keywords of a focus (C0.19)."""
MAX_PAGE_PART = 6000
"""Characters of an opened page that become part of a finding."""
SOURCES_KEY = "sources"
"""Key in the data of web/research for the text that users read."""
_TRACKING = lazy(r"^(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref_src|igshid)$", re.IGNORECASE)


def to_one_line(text: str, limit: int = MAX_SNIPPET) -> str:
    """Join visible text to one line, cut after a word."""
    line = " ".join(strip_invisible(text).split())
    if len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0].rstrip() + " …"


def select_queries(queries: Iterable[str]) -> tuple[str, ...]:
    """Return the first three distinct queries (R0.41, R0.46)."""
    from daiku.models.rules.replies.roleforms import MAX_QUERIES  # when used

    distinct: dict[str, str] = {}
    for query in queries:
        line = to_one_line(query, MAX_QUERY)
        if line:
            distinct.setdefault(line.casefold(), line)
    return tuple(distinct.values())[:MAX_QUERIES]


def normalize_url(url: str) -> str:
    """Return what all URLs of one page have in common: no fragment, tracking, or trailing slash."""
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
    """Build results from (url, title, text, score) tuples, each page once, the best first.

    Scores are normalized to 0–1. Without the engine's score they follow from the position.
    """
    unique: dict[str, tuple[str, str, str, float | None]] = {}
    for hit in hits:
        if hit[0].startswith(("http://", "https://")):
            unique.setdefault(normalize_url(hit[0]), hit)
    scores = [hit[3] for hit in unique.values() if hit[3] is not None]
    top = max((1.0, *scores))
    results = [
        SearchResult(
            source=source,
            url=url,
            title=to_one_line(title, 200) or url,
            text=to_one_line(text),
            score=round(max(0.0, score / top) if score is not None else 1 / (1 + position / 4), 3),
        )
        for position, (url, title, text, score) in enumerate(unique.values())
    ]
    return tuple(sorted(results, key=lambda result: -result.score)[:limit])


def format_results(results: Iterable[SearchResult]) -> str:
    """Format search results for a model: numbered, each with its URL."""
    return "\n".join(
        f"{number}. {r.title}\n   {r.url}" + (f"\n   {r.text}" if r.text else "")
        for number, r in enumerate(results, 1)
    )


def format_sources(
    queries: tuple[str, ...], findings: tuple[Finding, ...], problems: tuple[Text, ...] = ()
) -> Text:
    """Format findings for a user: the sources by query, then what could not be read."""
    numbers = {finding.url: number for number, finding in enumerate(findings, 1)}
    groups: list[Text] = []
    for query in queries:
        query_findings = [f for f in findings if f.query == query]
        rows = [f"- [{numbers[f.url]}] [{_escape_title(f.title)}]({f.url})" for f in query_findings]
        groups.append(joined("lines", [f"**{query}**", *(rows or [text("web.nothing_found")])]))
    notes = joined("lines", [text("roles.note", note=problem) for problem in problems])
    return joined("paragraphs", [*groups, notes])


def format_findings(sources: Text, findings: tuple[Finding, ...]) -> str:
    """Format findings for a model: the sources, then the text of each page."""
    pages = [
        f"[{number}] {f.title}\nSource: {f.url}\n\n{f.text}" for number, f in enumerate(findings, 1) if f.text
    ]
    return "\n\n---\n\n".join([sources, *pages])


def read_shown_sources(event: ToolResponse) -> Text:
    """Return the text for users of a result of web/research; empty for other tools."""
    value = (event.data or {}).get(SOURCES_KEY) if event.tool == "web/research" else None
    return from_json("", value) if value is not None else NO_TEXT


def group_by_query(findings: Iterable[Finding]) -> Mapping[str, str]:
    """Map each query to the text of its findings with their URLs: the coder's `search_results` (R0.52)."""
    texts: dict[str, list[str]] = {}
    for finding in findings:
        texts.setdefault(finding.query, []).append(f"{finding.title}\nSource: {finding.url}\n{finding.text}")
    return {query: "\n\n".join(parts) for query, parts in texts.items()}


def list_queries(message: AssistantMessage | MessageEvent) -> tuple[str, ...]:
    """Return the queries of a message's web calls."""
    found: list[str] = []
    for call in message.calls:
        if call.tool == "web/search":
            found.append(str(call.args.get("query", "")))
        elif call.tool == "web/research" and isinstance(queries := call.args.get("queries"), list):
            found += [str(query) for query in queries]
    return select_queries(found)


def fold_research(so_far: Research, event: Event) -> Research:
    """Fold an event of a run into its research.

    Only actual results of web tools become findings. A page's text replaces the search engine's summary of
    it.
    """
    match event:
        case MessageEvent(role="assistant") if event.calls or event.opaque:
            opaque = event.opaque.get("daiku")
            role_data = cast("dict[str, Any]", opaque) if isinstance(opaque, dict) else {}
            queries = select_queries((*so_far.queries, *list_queries(event), *role_data.get("queries", ())))
            return so_far.model_copy(
                update={"queries": queries, "ask_user": str(role_data.get("askUser") or so_far.ask_user)}
            )
        case ToolResponse(tool="web/search" | "web/research" | "web/fetch", ok=True, data=dict() as data):
            return so_far.model_copy(
                update={"results": _merge_findings(so_far.results, _read_findings(event, data))}
            )
        case _:
            return so_far


def _read_findings(event: ToolResponse, data: JsonObject) -> tuple[Finding, ...]:
    if event.tool == "web/fetch":
        text = event.result.partition("\n\n")[2][:MAX_PAGE_PART]
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


def _merge_findings(findings: tuple[Finding, ...], additions: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Keep each page once, under the query that found it first, with its longest text."""
    merged = {normalize_url(finding.url): finding for finding in findings}
    for new in additions:
        old = merged.get(normalize_url(new.url))
        if old is None:
            merged[normalize_url(new.url)] = new
        elif len(new.text) > len(old.text):
            merged[normalize_url(new.url)] = old.model_copy(update={"text": new.text})
    return tuple(merged.values())


_WORD = lazy(r"[A-Za-z][A-Za-z0-9.+#_-]*[A-Za-z0-9+#]|[A-Z]|[\u30a1-\u30ff]{2,}|[\u4e00-\u9fff]{2,}")
_COMMON = lazy(
    r"(?:an?|and|are|as|at|be|but|by|can|could|do|does|for|from|get|have|how|i|if|in|into|is|its?|just|let|make|me|my|need|new"
    r"|not|of|on|only|or|our|please|set|should|so|some|that|the|their|them|then|there|these|they|this|to|up|us|used?|using"
    r"|want|we|what|when|where|which|who|why|will|with|would|your?|add|create|implement|write|build|fix)",
    re.IGNORECASE,
)


def extract_keywords(focus: str) -> str:
    """Return the distinct words of a focus that are not common, joined by ", " (C0.19)."""
    distinct: dict[str, str] = {}
    for match in _WORD.finditer(strip_invisible(focus)):
        word = match[0]
        if not _COMMON.fullmatch(word):
            distinct.setdefault(word.lower(), word)
    return ", ".join(list(distinct.values())[:MAX_KEYWORDS])


def _escape_title(title: str) -> str:
    """Replace brackets, which would end the link."""
    return title.replace("[", "(").replace("]", ")")
