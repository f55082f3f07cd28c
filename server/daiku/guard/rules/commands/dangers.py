"""Find commands that cannot be undone or checked beforehand, call Daiku, or look like other commands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

from daiku.guard.rules.commands.bash import SimpleCommand, Word
from daiku.guard.rules.commands.rules import is_same_option, named_program
from daiku.guard.rules.commands.wrappers import SHELLS, list_words, list_words_by_name, program_name
from daiku.texts.rules.patterns import lazy
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
    """Return which dangers the commands `every` have: they delete, run downloaded code, or install.

    Such a command is never remembered by "always".
    """
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
        if word == "clean" and any(
            is_same_option(mark, given) for mark in ("-n", "--dry-run") for given in rest
        ):
            continue
        if not marks or any(is_same_option(mark, given) for mark in marks for given in rest):
            return True
        if word == "push" and any(given.startswith(("+", ":")) for given in rest):
            return True
    return False


def _fetches(words: tuple[Word, ...]) -> bool:
    name, texts = named_program(words)
    return name in _FETCHERS or (name == "git" and any(text in _GIT_FETCHES for text in texts))


def _runs_code(words: tuple[Word, ...]) -> bool:
    """Report whether a pipeline runs downloaded code.

    True for every program not known to only fetch or handle files.
    """
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


_HARMLESS = list_words_by_name("dangers", "harmless subcommands of daiku")
"""Sub-commands of Daiku that change nothing, with the words that must follow where some do."""
_OURS = frozenset({"-mdaiku", "-mdaiku.__main__"})
_PYTHON = lazy(r"(?:python|pypy)[\d.]*|py")


def changes_daiku(simple: SimpleCommand) -> bool:
    """Return True if a command calls Daiku for more than a look: it would change what Daiku may do, or begin a run.

    An option before the sub-command counts as a change.
    """
    words = _behind_daiku(simple)
    if words is None:
        return False
    first, second = (*words, "", "")[:2]
    allowed = _HARMLESS.get(first)
    return allowed is None or (bool(allowed) and second not in allowed)


def _behind_daiku(simple: SimpleCommand) -> tuple[str, ...] | None:
    """Return the words that Daiku is called with; None where it is not called."""
    name, words = program_name(simple.words), simple.texts[1:]
    if name == "daiku":
        return words
    if not _PYTHON.fullmatch(name):
        return None
    for at, word in enumerate(words):
        if word in _OURS:
            return words[at + 1 :]
        if word == "-m" and words[at + 1 : at + 2] and f"-m{words[at + 1]}" in _OURS:
            return words[at + 2 :]
    return None


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
