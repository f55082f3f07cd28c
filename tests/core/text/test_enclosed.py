"""Nothing that a stranger writes takes the square of its length to look through: comments, fences, headings, marks."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial

from daiku.guard.rules.guardrails.fingerprints import fingerprints, searched_forms
from daiku.memory.rules.terms import split_terms
from daiku.team.rules.drafting.headings import find_headings
from daiku.texts.rules.marks import MOST, without_mark_runs
from tests.cases import for_each
from tests.timing import cpu_seconds

SMALL, TIMES = 3_000, 16


@for_each("piece", ["`", "~", '\\"', "\\'", "/* ", '"""\\', "'''\\", "\u0301\u0327"])
def test_code_of_a_hostile_form_is_compared_in_linear_time(piece: str) -> None:
    assert_linear(fingerprints, piece)


@for_each("piece", ["\u0301\u0327", "\u0301\uff9e", "\u0f73\u0301"])
def test_marks_without_end_are_normalized_in_linear_time(piece: str) -> None:
    assert_linear(searched_forms, piece)
    assert_linear(split_terms, piece)


@for_each("piece", ["<!--", "<h1>", "<h1 ", "<script>", "<!-- --><h1>a</h1>"])
def test_a_page_with_many_open_tags_is_read_in_linear_time(piece: str) -> None:
    assert_linear(partial(find_headings, form="html"), piece)


def test_a_heading_line_without_end_is_read_in_linear_time() -> None:
    for size in (SMALL, TIMES * SMALL):
        line = "# a" + " " * size + "#" * size + "x"
        assert len(find_headings(line, "markdown")) == 1
        assert cpu_seconds(partial(find_headings, line, "markdown")) < 1


def assert_linear(work: Callable[[str], object], piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        return cpu_seconds(lambda: work(text))

    small, large = seconds(SMALL), seconds(TIMES * SMALL)
    assert large < 6 * TIMES * max(small, 0.002), (small, large)


@for_each("text", ["naïve", "e\u0301" * 100, "カ\uff9e", "─" * 100, "กำ้" * 50, "ﾊﾞ" * 50])
def test_marks_that_writing_needs_are_kept(text: str) -> None:
    assert without_mark_runs(text) == text


def test_of_a_run_of_marks_the_first_are_kept() -> None:
    assert without_mark_runs("a" + "\u0301" * 99 + "b") == "a" + "\u0301" * MOST + "b"
    assert unicodedata.normalize("NFC", without_mark_runs("a" + "\u0301" * 99))[0] == "á"


@for_each(
    ("text", "titles"),
    [
        ("<h1>a<b>b</b></h1><!-- <h2>c</h2> --><H2 id=x>d</H2 >", ["ab", "d"]),
        ("<h1>a</h1><!-- never closed <h2>b</h2>", ["a", "b"]),
        ("<script><h1>no</h1></script><h3>yes</h3><h3>open", ["yes"]),
        ("<h1>open <h2>b</h2>", ["b"]),
    ],
)
def test_headings_of_pages_are_those_that_are_shown(text: str, titles: list[str]) -> None:
    assert [each.title for each in find_headings(text, "html")] == titles


@for_each(
    ("line", "title"), [("# a #", "a"), ("# a#", "a#"), ("## a ## b ##  ", "a ## b"), ("# #", ""), ("#", "")]
)
def test_a_heading_may_be_closed_by_its_marks(line: str, title: str) -> None:
    (found,) = find_headings(line, "markdown")
    assert found.title == title
