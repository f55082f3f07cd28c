"""Names of files that tools execute or obey by themselves, by category, and of files that hold secrets.

One table, names.json, says which names these are and how a change of each category is treated. `ask`: the user is
asked in every approval mode; with nobody there an edit is denied, and what a command wrote is put aside. `pipeline`:
the same, but a work item asks its person, as a server builds, checks, or deploys by it. `review`: the file runs by
itself too, but ordinary work changes it all the time (a Makefile, conftest.py, package.json), so a change is allowed,
and the request of a work item lists it for the reviewer.

Patterns are lower-case. `name/` is a folder anywhere, `parent/name` an entry of a folder, all else a file's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text

Treatment = Literal["ask", "pipeline", "review"]
_TABLES = cast("Mapping[str, Any]", json.loads(Path(__file__).with_name("names.json").read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class Category:
    """Files that one kind of tool executes or obeys by itself."""

    why: Text
    treatment: Treatment
    patterns: tuple[str, ...]


def _read_category(why: str, treatment: Treatment, patterns: Sequence[str]) -> Category:
    return Category(text(why), treatment, tuple(patterns))


def list_names(table: str) -> tuple[str, ...]:
    """Return the names of a table."""
    return tuple(_TABLES[table])


CATEGORIES = tuple(_read_category(**row) for row in _TABLES["categories"])


def _entries(*treatments: Treatment) -> dict[str, Text]:
    """Return the patterns of the table, each of which stands there once, with why it does."""
    asked = (category for category in CATEGORIES if category.treatment in treatments)
    return {pattern: category.why for category in asked for pattern in category.patterns}


def _folders(entries: Mapping[str, Text]) -> dict[str, Text]:
    return {pattern[:-1]: why for pattern, why in entries.items() if pattern.endswith("/")}


def _pairs(entries: Mapping[str, Text]) -> dict[tuple[str, str], Text]:
    pairs = (pattern.split("/") for pattern in entries if "/" in pattern[:-1])
    return {(parent, name): entries[f"{parent}/{name}"] for parent, name in pairs}


def _files(entries: Mapping[str, Text]) -> dict[str, Text]:
    return {pattern: why for pattern, why in entries.items() if "/" not in pattern}


_ASKED, _REVIEWED = _entries("ask", "pipeline"), _entries("review")
PROTECTED_FOLDERS, PROTECTED_PAIRS, PROTECTED_FILES = _folders(_ASKED), _pairs(_ASKED), _files(_ASKED)
REVIEWED_FOLDERS, REVIEWED_FILES = _folders(_REVIEWED), _files(_REVIEWED)
PIPELINE_PATTERNS = frozenset(_entries("pipeline"))
PLAIN_HIDDEN = frozenset(list_names("plain hidden"))
"""Hidden files and folders that run nothing; any other hidden name belongs to a tool that this table may not know."""
SECRET_FILES = list_names("secret files")
SECRET_SAMPLES = list_names("secret samples")
"""Names that a pattern of a shell must not match for it to be harmless."""
SECRET_FOLDERS = frozenset(list_names("secret folders"))
PUBLIC_FILES = list_names("public files")
SOURCE_FILES = list_names("source files")
"""Names of source code about secrets; secrets seldom have such names."""
