"""Whether a regular expression is cheap on any text, so that it may be matched where nothing can interrupt it."""

from __future__ import annotations

MOST_CHOICES = 6
"""`|` and `?` of a cheap pattern: each may double what is tried at one place."""
LONGEST = 500
"""Characters of a cheap pattern."""
_REPEATING = frozenset("*+{")


def is_cheap(pattern: str) -> bool:
    """True only where matching `pattern` takes a bounded number of steps at each place of a text: nothing in it
    repeats, refers back or looks around, and there is little to choose. Most patterns that are words are cheap."""
    choices, at = 0, 0
    if len(pattern) > LONGEST:
        return False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if pattern[at + 1 : at + 2].isdigit():
                return False
            at += 2
            continue
        if char in _REPEATING or (
            char == "(" and pattern[at + 1 : at + 2] == "?" and pattern[at + 2 : at + 3] != ":"
        ):
            return False
        choices += char in "|?"
        at += 1
    return choices <= MOST_CHOICES
