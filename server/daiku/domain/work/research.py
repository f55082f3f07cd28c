"""Web research: search results, pages read, and queries."""

from daiku.domain.base import Frozen, Wire


class SearchResult(Frozen):
    """A search result (X.18). `source` is the engine; `score` falls from 1 with the rank."""

    source: str
    url: str
    title: str
    text: str
    score: float


class Finding(Wire):
    """A page that a web tool returned for `query`; `text` is the part that was read."""

    query: str
    url: str
    title: str
    text: str


class Research(Wire):
    """Result of research.

    At most three queries, findings in the order of queries and scores, and a question that only the user can answer.
    """

    queries: tuple[str, ...] = ()
    results: tuple[Finding, ...] = ()
    ask_user: str = ""
