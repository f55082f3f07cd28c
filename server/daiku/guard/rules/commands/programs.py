"""Facts about programs, read from programs.json: what they fetch, delete, run, and only read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from daiku.dataclass import dataclass

_TABLES = cast(
    "Mapping[str, Mapping[str, Any]]",
    json.loads(Path(__file__).with_name("programs.json").read_text("utf-8")),
)


def list_words(topic: str, table: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(_TABLES[topic][table])


def list_words_by_name(topic: str, table: str) -> dict[str, tuple[str, ...]]:
    """Return the words of a table by the name of the program or sub-command."""
    return {name: tuple(words) for name, words in _TABLES[topic][table].items()}


@dataclass(frozen=True, slots=True)
class Flags:
    """Options that are harmless.

    `short` are letters that may stand together; `long` are whole names, never abbreviations; `valued` are letters that
    take the rest of the word or the next word.
    """

    short: str = ""
    long: frozenset[str] = frozenset()
    valued: str = ""
    operands: int = 99
    numbers: bool = False
    """True where `-20` is a count."""


def _read_flags(short: str = "", long: Sequence[str] = (), valued: str = "", **more: int) -> Flags:
    return Flags(short, frozenset(long), valued, more.get("operands", 99), bool(more.get("numbers")))


def list_flags(table: str) -> dict[str, Flags]:
    """Return the harmless options by name of the program or sub-command. A row may have several names."""
    rows = {names: _read_flags(**row) for names, row in _TABLES["only reading"][table].items()}
    return {name: flags for names, flags in rows.items() for name in names.split()}


PROGRAMS: Mapping[str, Flags | None] = list_flags("options") | dict.fromkeys(
    list_words("only reading", "any options")
)
"""Programs that only read with these options; None: with any."""
GIT = list_flags("options of git")
FIND = list_words("only reading", "options of find")
"""Tests and actions of `find` that only look."""
