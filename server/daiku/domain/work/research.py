"""What is known from the web: hits of search engines, pages that were read, the questions behind them."""

from daiku.domain.base import Frozen, Wire


class SearchResult(Frozen):
    """One hit (X.18). `source` is the engine; `score` falls from 1 with the place in its list."""

    source: str
    url: str
    title: str
    text: str
    score: float


class Finding(Wire):
    """A page that a web tool really returned for `query`; `text` is what stands there, as far as it was read."""

    query: str
    url: str
    title: str
    text: str


class Research(Wire):
    """What research came to: at most three queries, findings in the order of queries and scores, and
    the question that only the person can answer."""

    queries: tuple[str, ...] = ()
    results: tuple[Finding, ...] = ()
    ask_user: str = ""
