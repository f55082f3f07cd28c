"""Whether an item tells what to do in words that are believed, and which of its comments are taken along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from daiku.domain.items.forge import Said

MAX_COMMENTS = 200_000
"""Characters of an item's comments together."""


def without_instructions(
    body: str, body_trusted: bool, comments: Sequence[Said]
) -> Literal["empty", "untrusted"] | None:
    """Return why there is nothing to process; None if a text or a comment is trusted."""
    if any(said.trusted for said in comments):
        return None
    if not body.strip():
        return "empty"
    return None if body_trusted else "untrusted"


def within_room(comments: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return the comments that fit, the newest trusted ones first, so that strangers cannot crowd an item out."""
    kept: set[str] = set()
    room, newest = MAX_COMMENTS, comments[::-1]
    for said in sorted(newest, key=lambda said: not said.trusted):
        if len(said.text) <= room:
            kept.add(said.id)
            room -= len(said.text)
    return tuple(said for said in comments if said.id in kept)
