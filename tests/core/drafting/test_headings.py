"""Headings of every format, and which of them a new text lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.work.documents import DocumentFormat
from daiku.team.rules.drafting.headings import detect_format, find_headings, find_lost_headings, is_prose
from tests.cases import for_each

MARKDOWN = """---
title: "# not a heading"
---
# One

Text

Two
---

```sh
# a comment, not a heading
```

   ~~~
## neither
   ~~~

<!--
# hidden
-->
### Three ###

> # quoted

- item
---

    # indented code

#hashtag
####### seven
"""


def shown(text: str, form: DocumentFormat) -> list[str]:
    return [f"{h.mark} {h.title}".strip() for h in find_headings(text, form)]


def test_headings_of_markdown_are_not_those_in_code_comments_or_front_matter() -> None:
    """R1.60: a `#` line within a fence is code."""
    assert shown(MARKDOWN, "markdown") == ["# One", "## Two", "### Three"]
    assert shown(MARKDOWN.replace("\n", "\r\n"), "markdown") == ["# One", "## Two", "### Three"]


@for_each(
    ("form", "text", "found"),
    [
        ("rst", "=====\nTitle\n=====\n\nPart\n----\n\ntext\n\n- a\n", ["== Title", "- Part"]),
        ("rst", "見出し\n======\n\n本文\n", ["= 見出し"]),
        ("asciidoc", "= Title\n\n== Part\n\n----\n== code\n----\n", ["= Title", "== Part"]),
        (
            "html",
            "<H1 class='x'>A <b>b</b></H1><!-- <h2>no</h2> --><pre><h3>no</h3></pre><h2>B</h2>",
            ["h1 A b", "h2 B"],
        ),
        ("latex", "\\section{A}\n% x\n\\subsection*{B}\n", ["section A", "subsection B"]),
        ("plain", "第1章 はじめに\n\n本文。\n\n■ 概要\n\n本文。\n", ["第1章 はじめに", "■ 概要"]),
        ("plain", "1. Introduction\n\nText.\n\n1. item\n2. item\n", ["1. Introduction"]),
        ("plain", "No headings here, just words.\n\nAnd more.\n", []),
        ("markdown", "", []),
    ],
)
def test_headings_of_every_format(form: DocumentFormat, text: str, found: list[str]) -> None:
    """R1.60."""
    assert shown(text, form) == found


def test_a_heading_that_goes_is_renamed_moved_or_put_on_another_level_is_lost() -> None:
    """R1.60: new ones may stand between."""
    old = "# A\n\nx\n\n## B\n\ny\n\n## C\n"
    assert find_lost_headings(old, old, "markdown") == ()
    assert find_lost_headings(old, "# A\n\n## New\n\n## B\n\n## C\n", "markdown") == ()
    for new, lost in [
        ("# A\n\n## C\n", ["B"]),
        ("# A\n\n## Bee\n\n## C\n", ["B"]),
        ("# A\n\n## C\n\n## B\n", ["C"]),
        ("# A\n\n### B\n\n## C\n", ["B"]),
        ("# A\n\n```\n## B\n```\n\n## C\n", ["B"]),
        ("", ["A", "B", "C"]),
    ]:
        assert [h.title for h in find_lost_headings(old, new, "markdown")] == lost, new


TEXT = st.lists(
    st.sampled_from(
        [
            "# A\n",
            "## B\n",
            "text\n",
            "\n",
            "```\n",
            "~~~\n",
            "---\n",
            "===\n",
            "  \r\n",
            "1. x\n",
            "<h1>t</h1>\n",
            "<!--\n",
            "-->\n",
        ]
    ),
    max_size=20,
).map("".join)


@given(TEXT, st.sampled_from(["markdown", "rst", "asciidoc", "html", "latex", "plain"]))
def test_headings_stand_where_they_say_in_order_and_none_is_lost_by_changing_nothing(
    text: str, form: DocumentFormat
) -> None:
    """R1.60."""
    found = find_headings(text, form)
    assert all(0 <= h.start < h.end <= len(text) for h in found)
    assert [h.start for h in found] == sorted({h.start for h in found})
    assert find_lost_headings(text, text, form) == ()


@pytest.mark.parametrize(
    ("path", "form", "prose"),
    [
        ("a/README.md", "markdown", True),
        ("x.RST", "rst", True),
        ("notes.txt", "plain", True),
        ("a.py", "plain", False),
        ("LICENSE", "plain", False),
    ],
)
def test_the_format_of_a_document_follows_from_its_name(path: str, form: str, prose: bool) -> None:
    assert (detect_format(path), is_prose(path)) == (form, prose)
