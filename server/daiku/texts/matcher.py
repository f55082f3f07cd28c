"""What the server says to a person, in the person's language: whole texts and sentences by a catalogue.

Texts are written in English where they arise, and put into another language where they leave for a
person; what a model reads stays English. A text that the catalogue does not know stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from daiku.texts.ja_acts import ACTS
from daiku.texts.ja_changes import CHANGES
from daiku.texts.ja_models import MODELS
from daiku.texts.ja_rest import REST
from daiku.texts.ja_roles import ROLES
from daiku.texts.ja_tasks import TASKS
from daiku.texts.ja_team import TEAM
from daiku.texts.ja_web import WEB
from daiku.texts.text import Text, render

Words = Callable[[str], str]

PHRASES = frozenset({"why", "message", "what", "more", "limit"})
"""Holes that may hold a text of ours; every other hole is a name, a path, a number: kept as it is."""
LONGEST = 2000
"""Characters; nothing of ours is longer, and of what a server or a vendor said only the first line is looked at."""
MOST_COLONS = 4
"""Names that may stand before what is wrong with them (`file: table: key: …`); a vendor's JSON has many more."""
_HOLE = re.compile(r"\{(\w+)\}")
_SPACED = re.compile(r"( ?)\{(\w+)\}( ?)")
_OF_JAPAN = re.compile(r"[\u3001-\u30ff\u4e00-\u9fff\uff01-\uff5e]")
_SEAM = re.compile(r"(?<=[.!?…])[ \n]+|; |\n")
_ENDS = ("。", "！", "？", "、")


def translator(locale: str) -> Words:
    """The words for a locale such as `ja`, `ja-JP`, `ja_JP.UTF-8`; English where there are none."""
    language = re.split(r"[-_.]", locale.lower(), maxsplit=1)[0]
    return _in_japanese if language == "ja" else _english


def _in_japanese(text: str) -> str:
    return render(text, "ja") if isinstance(text, Text) and text.id else _japanese(text)


def _english(text: str) -> str:
    return text


@lru_cache(maxsize=1024)
def _japanese(text: str) -> str:
    if len(text) > LONGEST:
        first, seam, rest = text.partition("\n")
        return (_japanese(first) if len(first) <= LONGEST else first) + seam + rest
    if not text.strip():
        return text
    whole = _one(text, strict=True)
    if whole is not None:
        return whole
    parts = list(_parts(text))
    said = [_one(part, strict=True) or _after_colon(part) for part, _ in parts]
    if len(parts) > 1 and None not in said:
        return _joined(parts, said)
    whole = _one(text, strict=False)
    if whole is not None:
        return whole
    return _joined(
        parts, [done or _one(part, strict=False) for (part, _), done in zip(parts, said, strict=True)]
    )


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Sentences and clauses, each with what stands between it and the next."""
    at = 0
    for seam in _SEAM.finditer(text):
        yield text[at : seam.start()], seam[0]
        at = seam.end()
    yield text[at:], ""


def _joined(parts: list[tuple[str, str]], said: list[str | None]) -> str:
    """Japanese sentences stand side by side; what stayed English keeps its own seam."""
    text = ""
    for (part, seam), done in zip(parts, said, strict=True):
        if done is None or "\n" in seam:
            text += (part if done is None else done) + seam
        else:
            text += done + ("。" if seam and not done.endswith(_ENDS) else "")
    return text


def _after_colon(text: str) -> str | None:
    """`path: what is wrong with it`: the first part is a name."""
    at = -2
    for _ in range(MOST_COLONS):
        at = text.find(": ", at + 2)
        if at < 0:
            break
        rest = _one(text[at + 2 :], strict=True)
        if rest is not None:
            return f"{text[: at + 2]}{rest}"
    return None


def _one(text: str, *, strict: bool) -> str | None:
    """One text by the catalogue; also with its full stop left out, or its first letter made small."""
    found = _by_catalogue(text, strict=strict)
    if found is None and text.endswith("."):
        found = _by_catalogue(text[:-1], strict=strict)
        found = None if found is None else found + "。"
    if found is None and text[:1].isupper():
        small = text[0].lower() + text[1:]
        found = _by_catalogue(small, strict=strict)
        if found is None and text.endswith("."):
            found = _by_catalogue(small[:-1], strict=strict)
            found = None if found is None else found + "。"
    return found


def _by_catalogue(text: str, *, strict: bool) -> str | None:
    exact, templates = _catalogue()
    if text in exact:
        return exact[text]
    for template in templates.get(text[:1], templates[""]):
        filled = template.fill(text, strict=strict)
        if filled is not None:
            return filled
    return None


class _Template:
    """English with holes, and the Japanese to fill."""

    __slots__ = ("_holes", "_japanese", "_pieces", "first", "weight")

    def __init__(self, english: str, japanese: str) -> None:
        found = _HOLE.split(english)
        self._pieces, self._holes = found[::2], found[1::2]
        self._japanese = japanese
        self.weight = sum(map(len, self._pieces))
        self.first = self._pieces[0][:1]

    def fill(self, text: str, *, strict: bool) -> str | None:
        """The Japanese where `text` is this one, else None. `strict`: no hole holds several sentences."""
        first, *between, last = self._pieces
        if not text.startswith(first) or not text.endswith(last) or len(text) < self.weight:
            return None
        at, end = len(first), len(text) - len(last)
        values: list[str] = []
        for piece in between:
            found = text.find(piece, at, end)
            if found < 0:
                return None
            values.append(text[at:found])
            at = found + len(piece)
        if at > end:
            return None
        values.append(text[at:end])
        for name, value in zip(self._holes, values, strict=True):
            if (not value and name != "more") or (strict and _SEAM.search(value)):
                return None
        filled = dict(zip(self._holes, map(_filling, self._holes, values), strict=True))
        return _SPACED.sub(lambda hole: _set_in(filled[hole[2]], hole), self._japanese)


def _filling(name: str, value: str) -> str:
    if name == "more" and value == ".":
        return "。"
    return _japanese(value) if name in PHRASES else value


def _set_in(value: str, hole: re.Match[str]) -> str:
    """Blanks stand between Japanese and other letters, not between Japanese and Japanese."""
    follows = _OF_JAPAN.match(value) and _OF_JAPAN.match(hole.string[: hole.start()][-1:])
    before = "" if follows else hole[1]
    if _OF_JAPAN.match(value[-1:]):
        return f"{before}{value}"
    return f"{before}{value}{hole[3] or (' ' if hole[2] == 'message' and value.endswith('.') else '')}"


@cache
def _catalogue() -> tuple[dict[str, str], dict[str, tuple[_Template, ...]]]:
    """Whole texts, and templates by the first letter that a text must have; under "" those that begin with a hole,
    which are also among the others. The longest come first."""
    exact: dict[str, str] = {}
    templates: list[_Template] = []
    for english, japanese in (*ACTS, *CHANGES, *TASKS, *TEAM, *MODELS, *REST, *ROLES, *WEB):
        if _HOLE.search(english):
            templates.append(_Template(english, japanese))
        else:
            exact[english] = japanese
    templates.sort(key=lambda t: -t.weight)
    letters = {"", *(t.first for t in templates)}
    return exact, {letter: tuple(t for t in templates if t.first in ("", letter)) for letter in letters}
