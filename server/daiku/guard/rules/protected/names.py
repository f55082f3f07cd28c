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
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote

from daiku.dataclass import dataclass
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

# One table, names.json, says which names these are and how a change of each category is treated. `ask`: the user is
# asked in every approval mode; with nobody there an edit is denied, and what a command wrote is put aside. `pipeline`:
# the same, but a work item asks its person, as a server builds, checks, or deploys by it. `review`: the file runs by
# itself too, but ordinary work changes it all the time (a Makefile, conftest.py, package.json), so a change is allowed,
# and the request of a work item lists it for the reviewer.
#
# Patterns are lower-case. `name/` is a folder anywhere, `parent/name` an entry of a folder, all else a file's name.

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


_ASKED, _REVIEWED_NAMES = _entries("ask", "pipeline"), _entries("review")
PROTECTED_FOLDERS, PROTECTED_PAIRS, PROTECTED_FILES = _folders(_ASKED), _pairs(_ASKED), _files(_ASKED)
REVIEWED_FOLDERS, REVIEWED_FILES = _folders(_REVIEWED_NAMES), _files(_REVIEWED_NAMES)
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


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return lazy("|".join(translate(pattern) for pattern in patterns))


_SECRET, _PUBLIC, _SOURCE = _any_of(SECRET_FILES), _any_of(PUBLIC_FILES), _any_of(SOURCE_FILES)
_PROTECTED = _any_of(PROTECTED_FILES)
_REVIEWED = _any_of(REVIEWED_FILES)
_GLOB_PARENTS = frozenset(parent for parent, name in PROTECTED_PAIRS if "*" in name)
_SINKS = frozenset(["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty"])
LONGEST_PATH = 4096
_STREAM = lazy(r":[^/]*$")


@lru_cache(maxsize=2048)
def spellings(path: str) -> tuple[tuple[str, ...], ...]:
    """Return the folders and name that `path` can mean on any file system, in lower case, with `..` resolved.

    There is more than one if decoding (%2e, NFKC) changes the path; a check must hold for each.
    """
    if len(path) > LONGEST_PATH:
        return ()  # no file system takes it
    found: list[tuple[str, ...]] = []
    text = _visible(path.strip())
    for _ in range(4):
        parts = _parts(text)
        if parts not in found:
            found.append(parts)
        decoded = _visible(unquote(text))
        if decoded == text:
            break
        text = decoded
    return tuple(found)


def _visible(path: str) -> str:
    text = unicodedata.normalize("NFKC", path)
    return text if text.isascii() and text.isprintable() else "".join(c for c in text if _shows(c))


def _shows(char: str) -> bool:
    return unicodedata.category(char) not in ("Cf", "Cc", "Mn") or char == "\t"


def _parts(path: str) -> tuple[str, ...]:
    text = path.replace("\\", "/").casefold()
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    parts: list[str] = []
    for raw in text.split("/"):
        name = _STREAM.sub("", raw).strip()
        stripped = name.rstrip(". ")
        name = stripped or name
        if name in ("", "."):
            continue
        if name == "..":
            if parts:
                parts.pop()
        else:
            parts.append("." + name[:-2] if name in ("git~1", "git~2", "hg~1") else name)
    return tuple(parts)


def explain_protection(path: str) -> Text:
    """Return why a change of `path` needs the user's approval; empty if it does not."""
    return next((why for _, why in _protected(path)), NO_TEXT)


def is_pipeline(path: str) -> bool:
    """Return True if a server may run `path`, relative to its root, by itself, and nothing else protects it.

    A hidden file that the table does not know counts too: its name says that it is a tool's.
    """
    patterns = {name for name, _ in _protected(path)}
    return patterns <= PIPELINE_PATTERNS and bool(patterns or explain_hidden(path))


def needs_review(path: str) -> bool:
    """Return True if a tool executes or obeys `path` by itself, so that a reviewer should look at its change."""
    return bool(explain_protection(path) or explain_hidden(path)) or any(
        REVIEWED_FOLDERS.keys() & set(parts) or (parts and _REVIEWED.match(parts[-1]))
        for parts in spellings(path)
    )


def explain_hidden(path: str) -> Text:
    """Return a reason if `path`, relative to its root, is hidden and not known to run nothing."""
    for parts in spellings(path):
        public = bool(parts) and _PUBLIC.match(parts[-1])
        if not public and any(name.startswith(".") and name not in PLAIN_HIDDEN for name in parts):
            return text("protected.hidden_setting")
    return NO_TEXT


def _protected(path: str) -> Iterator[tuple[str, Text]]:
    """Yield each table entry that `path` matches, with the reason it is protected."""
    for parts in spellings(path):
        for name in parts:
            if name in PROTECTED_FOLDERS:
                yield f"{name}/", PROTECTED_FOLDERS[name]
        for parent, name in pairwise(parts):
            if (parent, name) in PROTECTED_PAIRS:
                yield f"{parent}/{name}", PROTECTED_PAIRS[parent, name]
            elif parent in _GLOB_PARENTS:
                yield from _globbed(parent, name)
        if not parts:
            continue
        name = parts[-1]
        if _PUBLIC.match(name):
            continue
        if _PROTECTED.match(name):
            yield from (
                (pattern, why) for pattern, why in PROTECTED_FILES.items() if fnmatchcase(name, pattern)
            )
        elif parts[:1] in (("proc",), ("sys",), ("dev",)) and path.startswith("/") and not _is_sink(parts):
            yield path, text("protected.running_system")


def _globbed(parent: str, name: str) -> Iterator[tuple[str, Text]]:
    for (folder, pattern), why in PROTECTED_PAIRS.items():
        if folder == parent and fnmatchcase(name, pattern):
            yield f"{folder}/{pattern}", why


def _is_sink(parts: tuple[str, ...]) -> bool:
    """Report whether the path is a device that stores nothing, such as /dev/null."""
    return parts[:1] == ("dev",) and len(parts) > 1 and (parts[1] in _SINKS or parts[1:2] == ("fd",))


def holds_secrets(path: str) -> bool:
    """Report whether `path` is named like a file of keys or passwords."""
    return any(_secret(parts) for parts in spellings(path))


def _secret(parts: tuple[str, ...]) -> bool:
    if not parts:
        return False
    name = parts[-1]
    if parts[:1] == ("proc",) and name in ("environ", "mem", "cmdline"):
        return True
    if _PUBLIC.match(name):
        return False
    if SECRET_FOLDERS & set(parts[:-1]) or name in SECRET_FOLDERS:
        return True
    if _SOURCE.match(name):
        return False
    return bool(_SECRET.match(name))
