"""The sections of a playbook, their short names in the ids of bullets, and those ids."""

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
"""What lessons are sorted by; a person may name others."""
FOR_EVERYTHING = ("project_conventions",)
"""Lessons of these hold whatever is asked."""
FOR_ALL_WORK = (*FOR_EVERYTHING, "build_and_test_commands", "environment")
"""Lessons of these hold for whatever is done to the files."""
USUAL_SECTION = SECTIONS[0]
"""Where a bullet is put whose section nobody named."""
LONGEST_SECTION = 80
MOST_CHARACTERS = 4_000
"""The longest text of a bullet: a lesson is a few sentences, and each one is sent to a model."""
MOST_KEYWORDS, LONGEST_KEYWORD = 50, 500
HIGHEST_BROUGHT = 9_999_999
"""The highest number of an id that an import may bring: above it there is room for all that will be given."""
MOST_COUNTED = 1_000_000
"""The most that an import may say of how often a bullet helped or harmed."""
UNNAMED = "misc"
_PERSON = "my"
"""What an id of a person's own playbook begins with, and none of a repository's does: a run is told bullets of both, and
what it cites names one of them."""
_WORD = lazy(r"[^\W_]+")
BULLET_ID = lazy(r"(?P<slug>[a-z]{2,6})-(?P<number>[0-9]{5,9})")
"""An id of a bullet, whole (`fullmatch`) or in a text."""


def section_of(name: str) -> str:
    """A section's name as it is kept: on one line, without spaces at its ends, and the usual one where it is empty."""
    return " ".join(name.split())[:LONGEST_SECTION].strip() or USUAL_SECTION


def section_words(name: str) -> tuple[str, ...]:
    """What two names of one section have in common, however each is spelt."""
    return tuple("".join(char if char.isalnum() else " " for char in section_of(name).casefold()).split())


def keywords_of(words: Iterable[str]) -> tuple[str, ...]:
    """Keywords as they are kept: each once, none empty, and no more than anybody needs."""
    found = dict.fromkeys(word.strip()[:LONGEST_KEYWORD] for word in words)
    return tuple(word for word in found if word)[:MOST_KEYWORDS]


@lru_cache(1_000)
def slug_of(section: str, scope: PlaybookScope = "repository") -> str:
    """R3.31: the short name of a section in ids: the first letters of its words (at most four), of a single word its
    first three letters. In a person's own playbook `my` stands before it."""
    words = _WORD.findall(section.lower())
    slug = "".join(word[0] for word in words[:4]) if len(words) > 1 else "".join(words)[:3]
    if len(slug) < 2 or not re.fullmatch("[a-z]+", slug):
        slug = UNNAMED
    if scope == "user":
        return _PERSON + slug
    return UNNAMED if slug.startswith(_PERSON) else slug


def bullet_id(slug: str, number: int) -> str:
    """R3.31: the id of the `number`th bullet of a slug: `shr-00001`."""
    return f"{slug}-{number:05d}"


def id_parts(name: str, scope: PlaybookScope) -> tuple[str, int] | None:
    """The slug and the number of an id; None where a playbook of this scope has no such ids."""
    found = BULLET_ID.fullmatch(name)
    if found is None or found["slug"].startswith(_PERSON) != (scope == "user"):
        return None
    number = int(found["number"])
    return (found["slug"], number) if number and bullet_id(found["slug"], number) == name else None
