"""The check that an item has trusted instructions, and the choice of its comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from daiku.domain.items.forge import Said

MAX_COMMENTS = 200_000
"""Maximum characters of an item's comments together."""


def explain_missing_instructions(
    body: str, body_trusted: bool, comments: Sequence[Said]
) -> Literal["empty", "untrusted"] | None:
    """Return why there is nothing to process; None if a text or a comment is trusted."""
    if any(comment.trusted for comment in comments):
        return None
    if not body.strip():
        return "empty"
    return None if body_trusted else "untrusted"


def select_comments(comments: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return the comments that fit, newest trusted ones first, so that strangers cannot crowd them out."""
    selected: set[str] = set()
    remaining, newest = MAX_COMMENTS, comments[::-1]
    for comment in sorted(newest, key=lambda comment: not comment.trusted):
        if len(comment.text) <= remaining:
            selected.add(comment.id)
            remaining -= len(comment.text)
    return tuple(comment for comment in comments if comment.id in selected)
