"""Glob patterns as models write them: `*.py`, `src/**/*.{ts,tsx}`, `!*.min.js`, several separated by commas."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from pathspec import GitIgnoreSpec

_COMMAS = re.compile(r",(?![^{]*\})\s*")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAX_EXPANSIONS = 100
"""Largest number of patterns that one pattern's braces may expand to."""


def split_globs(glob: str) -> tuple[str, ...]:
    """Split `glob` at commas, except within braces."""
    return tuple(part for part in _COMMAS.split(glob.strip()) if part)


@lru_cache(maxsize=64)
def build_matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a predicate for paths with `/`, relative to the folder that the patterns start at.

    The last pattern that matches decides. A path that none matches is included if all patterns exclude.
    """
    plain = [part for glob in globs for part in _expand_braces(glob)]
    if not plain:
        return lambda _path: True
    rules = [(not part.startswith("!"), GitIgnoreSpec.from_lines([part.removeprefix("!")])) for part in plain]
    otherwise = not any(includes for includes, _ in rules)

    def matches(path: str) -> bool:
        return next((includes for includes, spec in reversed(rules) if spec.match_file(path)), otherwise)

    return matches


def _expand_braces(glob: str) -> list[str]:
    """Expand the braces of `glob` into patterns without braces."""
    patterns: list[str] = []
    pending = [glob]
    while pending and len(patterns) < _MAX_EXPANSIONS:
        part = pending.pop()
        braces = _BRACES.search(part)
        if braces is None:
            patterns.append(part)
        else:
            pending += (
                part[: braces.start()] + choice + part[braces.end() :] for choice in braces[1].split(",")
            )
    return patterns
