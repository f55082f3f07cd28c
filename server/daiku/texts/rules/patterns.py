"""Patterns that are compiled when they are first used: most are not needed before the server is ready."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
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
    """`re.compile`, put off until the pattern is used.

    For patterns of a module that is imported at start and whose compilation takes time: alternations of many words
    above all. Raises `re.error` at that use only.
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))


class WordSearch:
    """Words that are searched for together, in any case of ASCII: one pass, linear time, whatever the text is."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = tuple(words)

    @cached_property
    def _set(self) -> Any:
        import re2  # when used

        engine: Any = re2  # it has no types
        options = engine.Options()
        options.case_sensitive, options.encoding = False, engine.Options.Encoding.LATIN1
        words = engine.Set.SearchSet(options)
        for word in self.words:
            words.Add(engine.escape(word))
        words.Compile()
        return words

    def find(self, data: bytes) -> list[int]:
        """Return the places, in the list of words, of those that occur in `data`."""
        return self._set.Match(data) or [] if self.words else []
