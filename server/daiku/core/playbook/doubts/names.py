"""Whether a name stands in a text however its parts are joined there: `all_tests.sh`, `AllTests.sh`, "all dash tests dot sh"."""

from __future__ import annotations

import re
from functools import lru_cache

from daiku.core.text.patterns import lazy
from daiku.dataclass import dataclass

LEAST = 7
"""Letters of a name below which it may be made of other words by chance."""
_MARK = "\x1f"
_PARTS = lazy(r"[^\W_]+")
_SPELLED = lazy(
    r"\b(?:dot|period|slash|dash|hyphen|minus|underscore|point)\b|ドット|ピリオド|スラッシュ|ダッシュ|ハイフン"
    r"|アンダースコア|アンダーバー|点|てん"
)
"""How what joins the parts of a name is said in words."""
_PERCENT = lazy(r"%([2-7][0-9a-f])")
_NUMBERED = lazy(r"^[ \t]*(?:[^\s:]{1,200}:)?\d+(?: \| ?|:[ \t]?|-[ \t]|\t)")
"""What stands before a line where a tool counts the lines of a file."""


@dataclass(frozen=True, slots=True)
class Names:
    """A text as its words one after the other, each between two marks."""

    row: str

    def holds(self, name: str) -> bool:
        """Whether `name` is made up of whole words that stand there one after the other."""
        letters = "".join(_PARTS.findall(name))
        return len(letters) >= LEAST and _joined_in_any_way(letters).search(self.row) is not None


@lru_cache(maxsize=512)
def _joined_in_any_way(letters: str) -> re.Pattern[str]:
    return re.compile(_MARK + f"{_MARK}?".join(map(re.escape, letters)) + _MARK)


def parts_of(name: str) -> list[str]:
    """What a name is made of, in small letters."""
    return _PARTS.findall(name.casefold())


def names_in(folded: str) -> Names:
    """The names that a text in small letters may be read to have."""
    parts = _PARTS.findall(_SPELLED.sub(" ", _decoded(folded)))
    return Names(f"{_MARK}{_MARK.join(parts)}{_MARK}")


def _decoded(text: str) -> str:
    """`text` with the characters that it writes as HTML or an address does."""
    if "&" in text and ";" in text:
        from html import unescape  # when used

        text = unescape(text)
    return _PERCENT.sub(lambda found: chr(int(found[1], 16)), text).casefold()


def without_numbers(text: str) -> str:
    """`text` without the numbers, and the names of files, that a tool puts before each of its lines."""
    return "\n".join(_NUMBERED.sub("", line) for line in text.split("\n"))
