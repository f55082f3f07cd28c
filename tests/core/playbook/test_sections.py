"""The sections of a playbook and the ids that they give."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.playbook import PlaybookScope
from daiku.playbook.rules.sections import (
    BULLET_ID,
    SECTIONS,
    build_slug,
    format_bullet_id,
    normalize_section,
    parse_bullet_id,
)


@pytest.mark.parametrize(
    ("section", "slug"),
    [
        ("project_conventions", "pc"),
        ("build_and_test_commands", "batc"),
        ("tool_usage", "tu"),
        ("code_patterns_and_apis", "cpaa"),
        ("common_mistakes", "cm"),
        ("review_feedback", "rf"),
        ("environment", "env"),
        ("Strategies and hard rules, in five words", "sahr"),
        ("shared", "sha"),
        ("C", "misc"),
        ("規約", "misc"),
        ("ビルド test", "misc"),
        ("2nd try", "misc"),
        ("", "misc"),
        ("main_yard", "misc"),
    ],
)
def test_a_section_has_a_short_name_in_ids(section: str, slug: str) -> None:
    """R3.31: ids look like `shr-00001`. No repository's begins with `my`: those are a person's own."""
    assert build_slug(section) == slug
    assert build_slug(section, "user").removeprefix("my") == ("my" if section == "main_yard" else slug)


def test_the_fixed_sections_have_names_of_their_own() -> None:
    assert len({build_slug(each) for each in SECTIONS}) == len(SECTIONS)


@given(st.text(max_size=100), st.integers(1, 200_000))
def test_an_id_of_any_section_is_one_of_its_playbook_alone(section: str, number: int) -> None:
    """R3.31: five digits or more; an id is read back as what it was made of, and only by its own kind of playbook."""
    scopes: tuple[tuple[PlaybookScope, PlaybookScope], ...] = (("repository", "user"), ("user", "repository"))
    for scope, other in scopes:
        slug = build_slug(section, scope)
        made = format_bullet_id(slug, number)
        assert re.fullmatch("[a-z]{2,6}-[0-9]{5,}", made)
        assert BULLET_ID.fullmatch(made)
        assert parse_bullet_id(made, scope) == (slug, number)
        assert parse_bullet_id(made, other) is None


@pytest.mark.parametrize(
    "wrong", ["", "cm-1", "cm-00000", "cm-000001", "cm_00001", "CM-00001", "cm-00001 ", "cm-００００１"]
)
def test_what_is_no_id_is_none(wrong: str) -> None:
    assert parse_bullet_id(wrong, "repository") is None


@given(st.text(max_size=200))
def test_a_section_is_one_line(name: str) -> None:
    kept = normalize_section(name)
    assert kept == kept.strip() == normalize_section(kept)
    assert len(kept.splitlines()) == 1
    assert kept == SECTIONS[0] or len(kept) <= 80


def test_a_section_that_nobody_named_is_the_usual_one() -> None:
    assert normalize_section(" \n ") == "project_conventions"
    assert normalize_section(" Common\n mistakes ") == "Common mistakes"
