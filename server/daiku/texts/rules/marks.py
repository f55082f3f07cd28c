"""Combining marks: a long run of them is shortened, since to put one into its order takes time by its square."""

from __future__ import annotations

import re
import unicodedata

MOST = 30
"""Marks on one letter that are kept; no writing needs more (Unicode's stream-safe text has the same bound)."""
_HALF_WIDTH = "\uff9e\uff9f"
"""Voiced sound marks that become combining ones in the compatibility form."""
_RUN = re.compile(rf"(?:[^\w\s\x00-\x7f]|[{_HALF_WIDTH}]){{{MOST + 1},}}")
"""Where such a run may be: signs and marks alone."""


def without_mark_runs(text: str) -> str:
    """`text` with at most MOST marks on any letter: what normalizes it then takes time by its length."""
    return text if text.isascii() else _RUN.sub(_shortened, text)


def _shortened(run: re.Match[str]) -> str:
    kept, marks = list[str](), 0
    for char in run[0]:
        marks = marks + 1 if char in _HALF_WIDTH or unicodedata.category(char)[0] == "M" else 0
        if marks <= MOST:
            kept.append(char)
    return "".join(kept)
