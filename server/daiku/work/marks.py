"""The invisible marks by which what Daiku wrote is found again, and texts that cannot pass for one."""

from __future__ import annotations

import re

PROGRESS = "<!-- daiku:progress -->"
"""The progress comment begins with it (PROTOCOL 9)."""
OURS = "<!-- daiku:"
"""Every mark begins so."""
_MARK = re.compile(r"<!--(?=\s*daiku:)")


def without_marks(said: str) -> str:
    """`said`, in which nothing is a mark: what a model writes must not pass for something that was done."""
    return _MARK.sub("&lt;!--", said.removeprefix(PROGRESS)).strip()
