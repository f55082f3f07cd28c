"""Regular expressions that are compiled when they are first used: most are not needed before the server is ready."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Stands in for a compiled pattern; its methods become its own at their first use."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:  # reached once a name: what is found stays on the object
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found


def lazy(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """`re.compile`, put off until the pattern is used. For patterns of a module that is imported at start and
    whose compilation takes time: alternations of many words above all. Raises `re.error` at that use only."""
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
