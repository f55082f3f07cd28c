"""The invisible marks by which what Daiku wrote is found again, and texts that cannot pass for one."""

from __future__ import annotations

from daiku.texts.rules.patterns import lazy

OURS = "<!-- daiku:"
"""Every mark begins so."""
PROGRESS = f"{OURS}progress -->"
"""The progress comment begins with it (PROTOCOL 9)."""
_MARK = lazy(r"<!--(?=\s*daiku:)")


def mark_of(item: str, operation: str) -> str:
    """The mark that a comment or a request carries, by which it is found again."""
    return f"{OURS}op {item} {operation} -->"


def without_marks(said: str) -> str:
    """`said`, in which nothing is a mark: what a model writes must not pass for something that was done."""
    return _MARK.sub("&lt;!--", said.removeprefix(PROGRESS)).strip()
