"""Find words of a command that look like others: letters of several scripts, or a program that is not ASCII."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from daiku.core.commands.bash import SimpleCommand
from daiku.texts.text import Text, text

_JAPANESE = frozenset(
    ["CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "BOPOMOFO", "HANGUL"]
)
"""Scripts that Unicode's rules (UTS 39, highly restrictive) allow together, also with Latin letters."""


def lookalikes(commands: list[SimpleCommand]) -> tuple[Text, ...]:
    """Return a warning for each word that mixes scripts, and for each program or host that is not ASCII."""
    found: dict[Text, None] = {}
    for simple in commands:
        for at, word in enumerate(simple.words):
            if word.text.isascii():
                continue
            for part in _names(word.text):
                named = at == 0 or "://" in word.text
                odd = next((c for c in part if not c.isascii() and (named or _is_letter(c))), "")
                if odd and (named or _mixes_scripts(part)):
                    found[text("commands.lookalike", word=part, letter=odd, name=_name(odd))] = None
    return tuple(found)


def _names(word: str) -> Iterator[str]:
    host = word.partition("://")[2].partition("/")[0]
    yield from (host,) if host else word.split()


def _mixes_scripts(word: str) -> bool:
    scripts = {_name(char).partition(" ")[0] for char in word if _is_letter(char)}
    return len(scripts - _JAPANESE) + bool(scripts & _JAPANESE and scripts - _JAPANESE - {"LATIN"}) > 1


def _is_letter(char: str) -> bool:
    return char.isalpha() or unicodedata.category(char) == "Nl"  # Roman numerals are drawn as letters


def _name(char: str) -> str:
    return unicodedata.name(char, "UNKNOWN")
