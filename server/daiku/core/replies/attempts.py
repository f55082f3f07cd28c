"""How often a model is asked again whose reply cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

ATTEMPTS = 5
"""Replies in all, where each is wrong in another way than the one before (R0.97)."""
SAME = 3
"""Replies that are wrong in the same way: then another one would be too."""


def should_give_up(problems: Sequence[str]) -> bool:
    """Whether a model whose replies had these problems, one after the other, is not asked again. Nothing
    is waited for in between: a reply that came is no overload (the transport sees to those)."""
    same = len(problems) >= SAME and len(set(problems[-SAME:])) == 1
    return same or len(problems) >= ATTEMPTS
