"""Research as data: queries that count, results once each, what a model and a person read."""

from __future__ import annotations

from daiku.domain.base import JsonObject
from daiku.domain.events import ToolResponse
from daiku.domain.work.research import Finding
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import Text, as_json, render
from daiku.tools.rules.web.research import (
    SOURCES_KEY,
    extract_keywords,
    format_findings,
    format_sources,
    group_by_query,
    normalize_url,
    rank_results,
    read_shown_sources,
    select_queries,
    to_one_line,
)


def test_at_most_three_different_queries_count() -> None:
    assert select_queries(["a  b", "A B", "", "c", "d", "e"]) == ("a b", "c", "d")
    assert len(select_queries(["x" * 9000])[0]) <= 402


def test_one_page_has_many_addresses() -> None:
    same = ["https://www.a.com/x/", "http://a.com/x#top", "https://a.com/x?utm_source=n&gclid=1"]
    assert len({normalize_url(url) for url in same}) == 1
    assert normalize_url("https://a.com/x?id=1") != normalize_url("https://a.com/x?id=2")


def test_results_come_once_each_best_first_with_scores_between_0_and_1() -> None:
    hits = [("https://a/1", "A", "x", 2.0), ("https://b/2", "B", "y", 4.0), ("https://a/1#z", "A", "", 9.0)]
    made = rank_results("searxng", [*hits, ("javascript:x", "evil", "", 5.0)], 5)
    assert [(r.url, r.score, r.source) for r in made] == [
        ("https://b/2", 1.0, "searxng"),
        ("https://a/1", 0.5, "searxng"),
    ]
    unscored = rank_results("duckduckgo", [(f"https://h/{n}", "", "", None) for n in range(9)], 4)
    assert len(unscored) == 4
    assert [r.score for r in unscored] == sorted((r.score for r in unscored), reverse=True)
    assert unscored[0].title == "https://h/0"


def test_what_nobody_sees_is_taken_out() -> None:
    assert strip_invisible("a\u200bb\u202ec\U000e0041d\ufeff") == "abcd"
    assert strip_invisible("日本語 é 👍\n") == "日本語 é 👍\n"
    assert to_one_line("a\n b\t c", 3) == "a b …" or to_one_line("a\n b\t c", 3) == "a …"


FINDINGS = (
    Finding(query="q1", url="https://a/1", title="A [x]", text="page a\n\n---\n\nforged"),
    Finding(query="q1", url="https://b/2", title="B", text=""),
)


def test_findings_name_their_sources_and_a_page_cannot_forge_the_list() -> None:
    sources = format_sources(("q1", "q2"), FINDINGS, (Text("x was not reached."),))
    assert "Source: https://a/1" in format_findings(sources, FINDINGS)
    assert sources == (
        "**q1**\n- [1] [A (x)](https://a/1)\n- [2] [B](https://b/2)\n\n**q2**\n- nothing found\n\nNote: x was not reached."
    )
    shown = {"web/research": sources, "mcp/other": ""}
    for tool, said in shown.items():  # no other tool can say what a person reads of research
        data: JsonObject = {SOURCES_KEY: as_json(sources)}
        event = ToolResponse(id="c", tool=tool, ok=True, result="…", data=data, outcome="done")
        assert read_shown_sources(event) == said
    assert "見つかりませんでした" in render(sources, "ja")


def test_the_coder_gets_what_was_found_by_query() -> None:
    assert dict(group_by_query(FINDINGS)) == {
        "q1": "A [x]\nSource: https://a/1\npage a\n\n---\n\nforged\n\nB\nSource: https://b/2\n"
    }


def test_keywords_are_the_words_a_focus_is_about() -> None:
    focus = (
        "Implement JWT authentication for the FastAPI user service with PyJWT, and add 認証 tests for FastAPI"
    )
    assert extract_keywords(focus) == "JWT, authentication, FastAPI, user, service, PyJWT, 認証, tests"
    assert extract_keywords("") == ""
