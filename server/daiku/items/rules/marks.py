"""Invisible marks that identify what Daiku wrote, and their removal from other texts."""

from __future__ import annotations

from daiku.texts.rules.patterns import lazy

OURS = "<!-- daiku:"
"""Start of every mark."""
PROGRESS = f"{OURS}progress -->"
"""Start of the progress comment."""
_MARK = lazy(r"<!--(?=\s*daiku:)")


def build_mark(item: str, operation: str) -> str:
    """Return the mark that identifies a comment or a request."""
    return f"{OURS}op {item} {operation} -->"


def remove_marks(text: str) -> str:
    """Return `text` without marks: a model's text must not pass for something that was done."""
    return _MARK.sub("&lt;!--", text.removeprefix(PROGRESS)).strip()
