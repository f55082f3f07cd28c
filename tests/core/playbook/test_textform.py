"""Playbooks as text: what is written is read again unchanged, and what others wrote is understood."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.playbook import Bullet
from daiku.playbook.rules.sections import USUAL_SECTION, normalize_section
from daiku.playbook.rules.textform import (
    ReadText,
    UnreadableText,
    format_ace,
    format_agents,
    format_json,
    is_ace,
    read_ace,
    read_agents,
    read_json,
)
from tests.cases import for_each

# What a content may hold that has a meaning in one of the forms, between anything else.
_SIGNS = st.sampled_from(
    [
        *(
            "\n",
            "\n\n",
            "\\",
            "## ",
            "##",
            "#",
            "[pc-00001] helpful=1 harmful=0 :: ",
            "- ",
            "  ",
            "\t",
            "\r\n",
        ),
        *("```", "1. ", "* ", "\x0b", "\x85", "\u2028", "日本語の行", "😀", "{query}", '"', "::"),
    ]
)
_TEXTS = (
    st.lists(st.one_of(_SIGNS, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
    .map("".join)
    .filter(lambda text: bool(text.strip()))
)
_SECTIONS = st.one_of(
    st.sampled_from(["PROBLEM-SOLVING HEURISTICS", "common_mistakes", "STRATEGIES & INSIGHTS", "環境"]),
    st.text(st.characters(exclude_categories=["C", "Z"])).map(normalize_section),
)
_BULLETS = st.lists(
    st.builds(
        Bullet,
        id=st.from_regex(r"[a-z]{2,6}-[0-9]{5}", fullmatch=True),
        section=_SECTIONS,
        content=_TEXTS,
        helpful=st.integers(0, 999_999_999),
        harmful=st.integers(0, 999_999_999),
        origin=st.just("import"),
    ),
    unique_by=lambda bullet: bullet.id,
)


def grouped(bullets: list[Bullet]) -> tuple[Bullet, ...]:
    """The bullets in the order in which a text with sections holds them."""
    order = list(dict.fromkeys(each.section for each in bullets))
    return tuple(sorted(bullets, key=lambda each: order.index(each.section)))


@given(_BULLETS)
def test_aces_text_is_read_as_it_was_written_and_written_as_it_was_read(bullets: list[Bullet]) -> None:
    """Point 7 of the issue: ids, counters, sections and every character of a content, byte for byte."""
    said = format_ace(bullets)
    assert read_ace(said) == ReadText(grouped(bullets))
    assert format_ace(read_ace(said).bullets).encode() == said.encode()
    assert is_ace(said) == bool(bullets)


@given(_BULLETS)
def test_json_is_read_as_it_was_written_and_written_as_it_was_read(bullets: list[Bullet]) -> None:
    said = format_json(bullets)
    assert read_json(said).bullets == tuple(bullets)
    assert format_json(read_json(said).bullets).encode() == said.encode()
    assert not is_ace(said)


@given(_BULLETS)
def test_a_file_of_rules_keeps_sections_and_contents(bullets: list[Bullet]) -> None:
    said = format_agents(bullets)
    read = read_agents(said)
    assert [(each.section, each.content) for each in read.bullets] == [
        (each.section, each.content) for each in grouped(bullets)
    ]
    assert read.left_out == ()
    assert format_agents(read.bullets).encode() == said.encode()


def test_a_bullet_is_written_as_ace_writes_it() -> None:
    bullet = Bullet(id="shr-00012", section="STRATEGIES & INSIGHTS", content="Ask.", helpful=5, harmful=2)
    assert format_ace([bullet]) == "## STRATEGIES & INSIGHTS\n[shr-00012] helpful=5 harmful=2 :: Ask.\n"


ACE = """## STRATEGIES & INSIGHTS
[sai-00001] helpful=5 harmful=0 :: Look at the test first.

## PROBLEM-SOLVING HEURISTICS
[prob-00002] helpful=0 harmful=1 :: Several lines:

    1. run it
    2. \\frac{read} it
[prob-00002] helpful=3 harmful=0 :: The same id once more.

## COMMON MISTAKES TO AVOID
[err-00003] helpful=0 harmful=0 :: 全角の文字も数える。
"""


def test_text_of_ace_itself_comes_out_as_it_went_in() -> None:
    """Its section with a hyphen is no other section, and what goes on over several lines is one bullet."""
    read = read_ace(ACE)
    assert format_ace(read.bullets) == ACE
    assert [each.id for each in read.bullets] == ["sai-00001", "prob-00002", "prob-00002", "err-00003"]
    assert read.bullets[1].section == "PROBLEM-SOLVING HEURISTICS"
    assert read.bullets[1].content == "Several lines:\n\n    1. run it\n    2. \\frac{read} it"


@for_each(
    ("header", "section"),
    [
        ("##PROBLEM-SOLVING HEURISTICS", "PROBLEM-SOLVING HEURISTICS"),
        ("##   two   words  ", "two words"),
        ("## \u200bhidden\x07", "hidden"),
        ("##", USUAL_SECTION),
        ("", USUAL_SECTION),
    ],
)
def test_a_broken_header_loses_no_bullet(header: str, section: str) -> None:
    read = read_ace(f"{header}\n[pc-00001] helpful=0 harmful=0 :: Kept.\n")
    assert [(each.section, each.content) for each in read.bullets] == [(section, "Kept.")]


def test_what_is_no_bullet_is_named_by_its_line() -> None:
    read = read_ace("Title\n\n## A\nprose\n[pc-00001] helpful=0 harmful=0 :: x\n\n\n## B\nmore\n")
    assert read.left_out == (1, 4, 9)
    assert [each.content for each in read.bullets] == ["x"]


@for_each(
    "line", ["[pc-00002] helpful=x harmful=0 :: y", "[pc-00002] helpful=1", "[a] helpful=1 harmful=1 : y"]
)
def test_a_line_that_only_begins_like_a_bullet_is_named_and_ends_the_one_before(line: str) -> None:
    """B3.1: Point 7 of the issue: it is no part of the text of another lesson."""
    first, last = "[pc-00001] helpful=0 harmful=0 :: one", "[pc-00003] helpful=0 harmful=0 :: three"
    read = read_ace(f"## A\n{first}\n{line}\nwent on\n{last}\n")
    assert [each.content for each in read.bullets] == ["one", "three"]
    assert read.left_out == (3, 4)


@for_each(
    "line",
    [
        "## no header",
        "[pc-00009] helpful=many",
        "##",
        "[pc-00009] helpful=9 harmful=9 :: no bullet",
        "\\## x",
        "\\",
    ],
)
def test_a_line_of_a_content_that_looks_like_another_stays_in_it(line: str) -> None:
    bullet = Bullet(id="pc-00001", section="a", content=f"first\n{line}\n", origin="import")
    (read,) = read_ace(format_ace([bullet, bullet.model_copy(update={"id": "pc-00002"})])).bullets[:1]
    assert read == bullet


def test_a_section_that_no_header_can_hold_is_written_without_what_cannot_be_seen() -> None:
    bullet = Bullet(id="pc-00001", section="a\n## b\x1b[31m", content="x")
    assert format_ace([bullet]).split("\n")[0] == "## a ## b[31m"
    assert format_ace(read_ace(format_ace([bullet])).bullets) == format_ace([bullet])


def test_line_ends_and_the_mark_of_other_systems_are_no_part_of_a_content() -> None:
    said = "\ufeff## A\r\n[pc-00001] helpful=1 harmful=0 :: one\r\ntwo\r\n"
    assert [each.content for each in read_ace(said).bullets] == ["one\ntwo"]
    assert [each.content for each in read_agents("\ufeff# A\r\n- one\r\n  two\r\n").bullets] == ["one\ntwo"]


AGENTS = """# Rules of this project

Some prose that is no rule.

- Use tabs.
* Run the tests
  with `npm test`.
1. Numbered,
going on lazily

### Code

```sh
# no header
- no item
```
- 日本語のルール
\tindented by a tab
"""


def test_the_lists_of_a_file_that_a_person_wrote_are_read_and_the_rest_is_named() -> None:
    read = read_agents(AGENTS)
    assert [(each.section, each.content) for each in read.bullets] == [
        ("Rules of this project", "Use tabs."),
        ("Rules of this project", "Run the tests\nwith `npm test`."),
        ("Rules of this project", "Numbered,\ngoing on lazily"),
        ("Code", "日本語のルール\nindented by a tab"),
    ]
    assert read.left_out == (3, 13, 14, 15, 16)


def test_json_may_be_an_object_that_holds_the_bullets() -> None:
    bullet = Bullet(id="pc-00001", section="a", content="b")
    said = json.dumps({"bullets": [{"id": "pc-00001", "section": "a", "content": "b"}]})
    assert read_json(said).bullets == (bullet,)


@for_each(
    ("said", "place"),
    [
        ("[", "Expecting value"),
        ("[" * 100_000, ""),
        ('[{"id": "a", "section": "b"}]', "0.content"),
        ('[{"id": "a", "section": "b", "content": "c", "helpful": -1}]', "0.helpful"),
        ('[{"id": "a", "section": "b", "content": "c", "more": 1}]', "0.more"),
    ],
)
def test_json_that_is_no_playbook_is_refused_with_its_place(said: str, place: str) -> None:
    with pytest.raises(UnreadableText) as wrong:
        read_json(said)
    assert place in wrong.value.place


@for_each("said", ["{}", '{"bullets": "none"}', '{"a": [1]}'])
def test_json_without_a_list_of_lessons_breaks_off_nowhere(said: str) -> None:
    with pytest.raises(UnreadableText) as wrong:
        read_json(said)
    assert wrong.value.place == ""
