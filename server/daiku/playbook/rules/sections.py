"""Sections of a playbook, bullet ids, and the slugs of sections in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from daiku.domain.playbook import PlaybookScope
from daiku.texts.rules.patterns import lazy

SECTIONS = (
    "project_conventions",
    "build_and_test_commands",
    "tool_usage",
    "code_patterns_and_apis",
    "common_mistakes",
    "review_feedback",
    "environment",
)
"""Built-in sections; a person may use others."""
FOR_EVERYTHING = ("project_conventions",)
"""General sections, whose lessons apply to every request."""
FOR_ALL_WORK = (*FOR_EVERYTHING, "build_and_test_commands", "environment")
"""Sections whose lessons apply to every change of files."""
USUAL_SECTION = SECTIONS[0]
"""Section of bullets without one."""
LONGEST_SECTION = 80
MOST_CHARACTERS = 4_000
"""Maximum length of a bullet in characters: it is sent to a model."""
MOST_KEYWORDS, LONGEST_KEYWORD = 50, 500
HIGHEST_BROUGHT = 9_999_999
"""Highest number of an imported id; it leaves room for all numbers that will be assigned."""
MOST_COUNTED = 1_000_000
"""Highest value of an imported counter."""
UNNAMED = "misc"
_PERSON = "my"
"""Prefix of ids in a person's playbook, and of no repository's, so that ids are unique across both."""
_WORD = lazy(r"[^\W_]+")
BULLET_ID = lazy(r"(?P<slug>[a-z]{2,6})-(?P<number>[0-9]{5,9})")
"""Pattern of a bullet's id."""


def normalize_section(name: str) -> str:
    """Normalize a section's name: one line, trimmed, the default one if it is empty."""
    return " ".join(name.split())[:LONGEST_SECTION].strip() or USUAL_SECTION


def split_section(name: str) -> tuple[str, ...]:
    """Return the words of a section's name, to compare names regardless of spelling."""
    return tuple(
        "".join(char if char.isalnum() else " " for char in normalize_section(name).casefold()).split()
    )


def normalize_keywords(words: Iterable[str]) -> tuple[str, ...]:
    """Normalize keywords: trimmed, distinct, not empty, at most MOST_KEYWORDS."""
    distinct = dict.fromkeys(word.strip()[:LONGEST_KEYWORD] for word in words)
    return tuple(word for word in distinct if word)[:MOST_KEYWORDS]


@lru_cache(1_000)
def build_slug(section: str, scope: PlaybookScope = "repository") -> str:
    """Return the slug of a section in ids (R3.31).

    It has the first letters of the words (at most four), or the first three letters of a single word. In a
    person's playbook it begins with `my`.
    """
    words = _WORD.findall(section.lower())
    slug = "".join(word[0] for word in words[:4]) if len(words) > 1 else "".join(words)[:3]
    if len(slug) < 2 or not re.fullmatch("[a-z]+", slug):
        slug = UNNAMED
    if scope == "user":
        return _PERSON + slug
    return UNNAMED if slug.startswith(_PERSON) else slug


def format_bullet_id(slug: str, number: int) -> str:
    """Return the id of the `number`th bullet of a slug: `shr-00001` (R3.31)."""
    return f"{slug}-{number:05d}"


def parse_bullet_id(name: str, scope: PlaybookScope) -> tuple[str, int] | None:
    """Return the slug and the number of an id; None if the id does not belong to this scope."""
    match = BULLET_ID.fullmatch(name)
    if match is None or match["slug"].startswith(_PERSON) != (scope == "user"):
        return None
    number = int(match["number"])
    return (match["slug"], number) if number and format_bullet_id(match["slug"], number) == name else None
