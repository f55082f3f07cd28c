"""Find commands that cannot be undone or checked beforehand: they delete, install, or run downloaded code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.network import named_program
from daiku.core.commands.programs import list_words, list_words_by_name
from daiku.core.commands.words import Word
from daiku.core.commands.wrappers import SHELLS, program_name
from daiku.texts.text import Text, text

DELETES = text("commands.deletes")
DOWNLOADED = text("commands.downloaded_code")
INSTALLS = text("commands.installs")

_REMOVERS = list_words("dangers", "removers")
_DATABASES = list_words("dangers", "databases")
_DROPS = re.compile(r"\b(?:drop|truncate|delete\s+from|flushall|flushdb)\b", re.IGNORECASE)
_GIT_DELETES = list_words_by_name("dangers", "deleting subcommands of git")
"""Sub-commands of git with the words of theirs that delete; none: always."""
_WORDS_DELETE = list_words("dangers", "deleting words")
_MANAGES = list_words("dangers", "managers")
"""Programs whose sub-commands delete things that are not files of the workspace."""
_DELETE_OPTIONS = list_words_by_name("dangers", "deleting options")

_FETCHERS = list_words("dangers", "fetchers")
_GIT_FETCHES = frozenset(["clone", "fetch", "pull", "submodule", "lfs", "archive", "remote"])
_HANDLES = list_words("dangers", "file handlers")
"""What handles a file without running it."""
_REMOTE = frozenset(["npx", "bunx", "pnpx", "uvx", "pipx"])
_REMOTE_SECOND = list_words_by_name("dangers", "remote runners")
_INSTALLERS = list_words_by_name("dangers", "installers")
_REMOTE_CODE = re.compile(r"^(?:git\+|https?://|ssh://|github:|npm:|jsr:)", re.IGNORECASE)


def dangers(every: Collection[SimpleCommand]) -> tuple[Text, ...]:
    """Return which dangers the commands `every` have: they delete, run downloaded code, or install. Such a
    command is never remembered by "always"."""
    parts = [simple.words for simple in every if simple.words]
    found: dict[Text, None] = {}
    if any(_deletes(words) for words in parts):
        found[DELETES] = None
    fetches = any(_fetches(words) for words in parts)
    if any(_runs_remote(words) for words in parts) or (fetches and any(_runs_code(words) for words in parts)):
        found[DOWNLOADED] = None
    if is_installation(every):
        found[INSTALLS] = None
    return tuple(found)


def is_installation(every: Iterable[SimpleCommand]) -> bool:
    """Return True if one of the commands installs packages."""
    return any(_installs(simple.words) for simple in every if simple.words)


def _second(texts: tuple[str, ...]) -> str:
    return next((text for text in texts if not text.startswith("-")), "")


def _deletes(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    if name in _REMOVERS or name.startswith("mkfs"):
        return True
    if name == "git":
        return _git_deletes(texts)
    if name in _DATABASES:
        return any(_DROPS.search(text) for text in texts)
    if name in _MANAGES and any(text in _WORDS_DELETE for text in texts if not text.startswith("-")):
        return True
    options = _DELETE_OPTIONS.get(name, ())
    return any(text.startswith(option) for text in texts for option in options)


def _git_deletes(texts: tuple[str, ...]) -> bool:
    for at, word in enumerate(texts):
        if word not in _GIT_DELETES:
            continue
        marks, rest = _GIT_DELETES[word], texts[at + 1 :]
        if word == "clean" and any(_is_option(mark, given) for mark in ("-n", "--dry-run") for given in rest):
            continue
        if not marks or any(_is_option(mark, given) for mark in marks for given in rest):
            return True
        if word == "push" and any(given.startswith(("+", ":")) for given in rest):
            return True
    return False


def _is_option(mark: str, given: str) -> bool:
    if given == mark or given.startswith(mark + "="):
        return True
    if mark.startswith("--") and len(mark) > 2:
        return len(given) > 4 and mark.startswith(given)  # options may be abbreviated
    one_letter = len(mark) == 2 and mark[0] == "-" and mark[1] != "-"
    return one_letter and given.startswith("-") and not given.startswith("--") and mark[1] in given


def _fetches(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    return name in _FETCHERS or (name == "git" and any(text in _GIT_FETCHES for text in texts))


def _runs_code(words: tuple[Word, ...]) -> bool:
    """True for all but what is known to fetch or to handle files: any program may be what was fetched."""
    name = program_name(words)
    if name in SHELLS or not words[0].plain or "/" in words[0].text:
        return True
    return name != "git" and name not in _HANDLES and name not in _FETCHERS


def _runs_remote(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    if name in _REMOTE or _second(texts) in _REMOTE_SECOND.get(name, ()):
        return True
    if name == "go" and texts[:1] == ("run",) and any("@" in text for text in texts):
        return True
    runs = name in ("deno", "bun", "go", "pip", "pip3", "uv", "cargo", "npm", "pnpm", "yarn")
    return runs and any(_REMOTE_CODE.match(text) or "git+" in text for text in texts)


def _installs(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    seconds = _INSTALLERS.get(name)
    return seconds is not None and (_second(texts) in seconds or any(text in seconds for text in texts[:1]))
