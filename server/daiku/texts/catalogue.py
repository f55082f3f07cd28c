"""Every sentence for a person by its id: one JSON file a language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

Argument: TypeAlias = str | int | float
"""What fills a hole; a `Text` among them is put into the language of the whole."""
ENGLISH = "en"
_FOLDER = Path(__file__).parent
_HOLE = re.compile(r"( ?)\{(\w+)\}( ?)")
_OF_JAPAN = re.compile(r"[\u3001-\u30ff\u4e00-\u9fff\uff01-\uff5e]")


@cache
def languages() -> frozenset[str]:
    """Return the available languages, one per file."""
    return frozenset(path.stem for path in _FOLDER.glob("*.json"))


def language_of(locale: str) -> str:
    """Return the language for a locale such as `ja`, `ja-JP`, `ja_JP.UTF-8`; English if there is no match."""
    language = re.split(r"[-_.]", locale.lower(), maxsplit=1)[0]
    return language if language in languages() else ENGLISH


@cache
def sentences(language: str) -> Mapping[str, str]:
    """Return the catalogue of one language: message templates by key."""
    found: dict[str, str] = json.loads((_FOLDER / f"{language}.json").read_text("utf-8"))
    return found


def label(language: str, english: str) -> str:
    """Return the translation of the short English text `english`, or the text itself if there is none."""
    return sentences(language if language in languages() else ENGLISH).get(f"label.{english}", english)


def fill(language: str, key: str, args: Mapping[str, Argument]) -> str:
    """Return the message `key` with its placeholders filled; the parts of a `join.` are concatenated.

    Raises KeyError for an unknown key or a missing argument.
    """
    sentence = sentences(language)[key]
    if key.startswith("join."):
        return sentence.join(str(value) for value in args.values())
    return _HOLE.sub(lambda hole: _set_in(str(args[hole[2]]), hole), sentence)


def _set_in(value: str, hole: re.Match[str]) -> str:
    """Blanks stand between Japanese and other letters, not between Japanese and Japanese."""
    joins = _OF_JAPAN.match(value) and _OF_JAPAN.match(hole.string[: hole.start()][-1:])
    goes_on = _OF_JAPAN.match(value[-1:]) and _OF_JAPAN.match(hole.string[hole.end() :])
    return ("" if joins else hole[1]) + value + ("" if goes_on else hole[3])
