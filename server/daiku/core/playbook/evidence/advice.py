"""What the text of a bullet advises: the commands and the code that it names, and those that it warns of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from daiku.core.proof.evidence import plain_command
from daiku.core.text.patterns import lazy

LEAST_CODE = 4
"""Characters from which a piece of code says enough to be looked for in an edit."""
MOST_NAMED = 32
"""Pieces of code that are read from one text."""

_NAMED = lazy(
    r"```[a-z]*\n(?P<block>.*?)```|(?P<ticks>`+)(?P<span>[^`\n]+?)(?P=ticks)|^ {0,4}\$ (?P<line>[^\n]+)$",
    re.DOTALL | re.MULTILINE,
)
_WARNED_BEFORE = lazy(
    r"(?:instead\s+of|rather\s+than|in\s+place\s+of|\bnot|\bnever|\bavoid|\bwithout|\bno\s+longer|n't|n’t)"
    r"(?:\s+(?:just|only|ever|use|using|run|running|call|calling|do|the|a|plain|bare|with)){0,3}\s*[\"'“(]?\s*$",
    re.IGNORECASE,
)
_WARNED_AFTER = lazy(
    r"\s*[\"'”)]?\s*(?:\(?[^.;,。、`]{0,24}?\)?\s*)?(?:(?:always\s+|only\s+)?(?:fails?\b|failed\b|breaks?\b|hangs?\b)"
    r"|(?:does|do|did|will|is|was|can)\s*(?:not|n't|n’t)\b|(?:is|was)\s+(?:wrong|broken|outdated|obsolete|missing)\b"
    r"|no\s+longer\b|(?:ではなく|でなく|じゃなく|の代わり|は使わ|を使わ|は失敗|が失敗|は動か|は動き|は実行し(?:ない|ません)))",
    re.IGNORECASE,
)
_HOLE = lazy(r"^(?:<.*|\{.*|\[.*|\.{3}|…|\$\{.*)$")
_PROGRAM = lazy(r"^(?:\.{0,2}/)?[A-Za-z][\w.+/-]*$")
_PATH = lazy(r"(?<![\w/.-])(?:[\w.-]+/)+[\w.*-]*|(?<![\w/.-])[\w-]+\.[a-z]{1,4}(?![\w/])")


class Advice(NamedTuple):
    """`commands`: what is to be run, as words; `warned`: what is not; `code`: what edits that follow it hold;
    `places`: the files and folders it speaks of."""

    commands: tuple[tuple[str, ...], ...] = ()
    warned: tuple[tuple[str, ...], ...] = ()
    code: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


def advice_of(text: str) -> Advice:
    """What a bullet advises, by the code that it marks as such. A text without any advises nothing of the kind."""
    commands: list[tuple[str, ...]] = []
    warned: list[tuple[str, ...]] = []
    code: list[str] = []
    for found in list(_NAMED.finditer(text))[:MOST_NAMED]:
        inside = found["block"] or found["span"] or found["line"] or ""
        bad = _is_warned(text, found.start(), found.end())
        for line in inside.splitlines():
            plain = plain_command(line.strip().removeprefix("$ "))
            if words := _words(plain):
                (warned if bad else commands).append(words)
            if not bad and len(plain) >= LEAST_CODE:
                code.append(plain)
    plain_text = _NAMED.sub(" ", text)
    places = (place.removeprefix("./") for place in (*_PATH.findall(plain_text), *(_only_paths(code))))
    return Advice(
        tuple(dict.fromkeys(commands)),
        tuple(dict.fromkeys(warned)),
        tuple(dict.fromkeys(code)),
        tuple(dict.fromkeys(place for place in places if len(place) >= LEAST_CODE)),
    )


def names(text: str, bullet: str) -> bool:
    """Whether `text` names the bullet by its id."""
    at = text.find(bullet)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(bullet) : at + len(bullet) + 1]
        if not (before.isalnum() or before in ("-", "/")) and not (after.isalnum() or after == "-"):
            return True
        at = text.find(bullet, at + 1)
    return False


def looks_like_a_command(words: Sequence[str]) -> bool:
    """Whether words are rather a command than a name or an expression: a program and something behind it."""
    return (
        len(words) > 1 and not any(mark in word for word in words for mark in "(){}=;") and words[0].islower()
    )


def _is_warned(text: str, start: int, end: int) -> bool:
    return _WARNED_BEFORE.search(text[max(0, start - 48) : start]) is not None or (
        _WARNED_AFTER.match(text[end : end + 64]) is not None
    )


def _words(plain: str) -> tuple[str, ...]:
    """The words of a command up to the first that stands for something else; none where it cannot be one."""
    words: list[str] = []
    for word in plain.split(" "):
        if _HOLE.match(word):
            break
        words.append(word)
    return tuple(words) if words and _PROGRAM.match(words[0]) else ()


def _only_paths(code: Sequence[str]) -> list[str]:
    return [each for each in code if _PATH.fullmatch(each)]
