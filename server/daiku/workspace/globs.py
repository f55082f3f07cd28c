"""File patterns as models write them: `*.py`, `src/**/*.{ts,tsx}`, `!*.min.js`, several with commas between."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from pathspec import GitIgnoreSpec

_COMMAS = re.compile(r",(?![^{]*\})\s*")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST = 100
"""Patterns that the braces of one may make."""


def split_globs(glob: str) -> tuple[str, ...]:
    """The single patterns of `glob`; a comma within braces parts none."""
    return tuple(part for part in _COMMAS.split(glob.strip()) if part)


@lru_cache(maxsize=64)
def matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a path (with `/`, from the folder that the patterns begin at) matches: the last pattern that fits
    it decides; a file that none fits is in where all of them exclude."""
    plain = [part for glob in globs for part in _expanded(glob)]
    if not plain:
        return lambda _path: True
    rules = [(not part.startswith("!"), GitIgnoreSpec.from_lines([part.removeprefix("!")])) for part in plain]
    otherwise = not any(includes for includes, _ in rules)

    def matches(path: str) -> bool:
        return next((includes for includes, spec in reversed(rules) if spec.match_file(path)), otherwise)

    return matches


def _expanded(glob: str) -> list[str]:
    """The patterns without braces that `glob` stands for."""
    done: list[str] = []
    pending = [glob]
    while pending and len(done) < _MOST:
        part = pending.pop()
        braces = _BRACES.search(part)
        if braces is None:
            done.append(part)
        else:
            pending += (part[: braces.start()] + each + part[braces.end() :] for each in braces[1].split(","))
    return done
