"""Facts about programs, read from programs.json, and the command that a wrapper such as `env` or `timeout` runs."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import SimpleCommand, Word

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


WRAPPERS = list_words_by_name("wrappers", "options and operands") | dict.fromkeys(
    list_words("wrappers", "without options"), ()
)
"""Programs that run another one: their options that take a value, and words that precede the program."""
# Two words that run the rest.
PAIRS = list_words("wrappers", "pairs")
SHELLS = list_words("wrappers", "shells")
# Their arguments together, or one of them, are a command line.
TEXT_PROGRAMS = list_words("wrappers", "text programs")


_TEXT_OPTIONS = re.compile(
    r"^(?:-c|--command|--exec|-x|-S|--split-string|--to-command|--checkpoint-action|--use-compress-program|--run|--rsh"
    r"|--tree-filter|--index-filter|--msg-filter|--env-filter|--commit-filter|--upload-pack|--receive-pack|--pre|-e)"
    r"(?:=(?P<value>.*))?$",
    re.DOTALL,
)
_TEXT_OPTION_PROGRAMS = list_words("wrappers", "text option programs")
_ASSIGNMENT = re.compile(r"^\w+\+?=")
_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


def program_name(words: tuple[Word, ...]) -> str:
    """Return the program's name without its folder and `.exe`, in lower case."""
    if not words:
        return ""
    name = posixpath.basename(words[0].text.replace("\\", "/")).casefold()
    return name.removesuffix(".exe")


def runs_others(words: tuple[Word, ...]) -> bool:
    """Report whether the program's purpose is to run other programs."""
    name = program_name(words)
    second = words[1].text if len(words) > 1 else ""
    return (
        name in WRAPPERS
        or name in SHELLS
        or name in TEXT_PROGRAMS
        or f"{name} {second}" in PAIRS
        or (name in ("find", "fd", "fdfind") and any(w.text in _EXEC for w in words))
        or bool(_option_texts(name, words))
    )


def inner_commands(simple: SimpleCommand) -> tuple[tuple[SimpleCommand, ...], tuple[str, ...]]:
    """Return what `simple` would run: commands given by its words, and texts that a shell would parse."""
    words = simple.words
    name = program_name(words)
    commands: list[tuple[Word, ...]] = []
    texts: list[str] = list(_option_texts(name, words))
    if words and not words[0].plain:
        commands.append(words[1:])
    if (wrapper := WRAPPERS.get(name)) is not None:
        commands.extend(_after_options(words[1:], wrapper))
    second = words[1].text if len(words) > 1 else ""
    if f"{name} {second}" in PAIRS:
        commands.extend(_suffixes(words[2:]))
    if name in ("find", "fd", "fdfind"):
        commands.extend(words[i + 1 :] for i, w in enumerate(words) if w.text in _EXEC)
    if name in SHELLS:
        texts.extend(_shell_texts(words[1:]))
    if name in TEXT_PROGRAMS:
        texts.append(" ".join(w.text for w in words[1:] if not w.text.startswith("-")))
        texts.extend(w.text for w in words[1:] if " " in w.text)
        if name == "ssh":
            commands.extend(_suffixes(words[1:]))
    return tuple(SimpleCommand(c) for c in commands if c), tuple(t for t in texts if t)


def _suffixes(words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    return [words[i:] for i in range(min(len(words), 40))]


def _after_options(words: tuple[Word, ...], wrapper: tuple[str, ...]) -> list[tuple[Word, ...]]:
    """Return the words from the wrapped program on.

    After an unknown option or a computed word, every later position may be the program: all are returned.
    """
    valued = tuple(word for word in wrapper if word.startswith("-"))
    left = len(wrapper) - len(valued)
    at = 0
    while at < len(words):
        word = words[at]
        if not word.plain:
            return _suffixes(words[at:])
        if word.text == "--":
            at += 1
            break
        if word.text in valued:
            at += 2
        elif word.text.startswith("-") and len(word.text) > 1:
            name = word.text.partition("=")[0]
            if valued and not ("=" in word.text or name.startswith(valued)):
                return _suffixes(words[at + 1 :])
            at += 1
        elif _ASSIGNMENT.match(word.text) or word.text == "-":
            at += 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    return [words[at:]] if at < len(words) else []


def _shell_texts(words: tuple[Word, ...]) -> list[str]:
    texts: list[str] = []
    commanded = False
    for word in words:
        option = word.text.startswith(("-", "/c", "/C")) and len(word.text) > 1
        if option and not word.text.startswith("--"):
            commanded = commanded or "c" in word.text.casefold()
        elif option:
            commanded = commanded or word.text.startswith("--command")
            texts.extend(word.text.partition("=")[2:])
        elif commanded:
            texts.append(word.text)
    return texts


def _option_texts(name: str, words: tuple[Word, ...]) -> list[str]:
    """Command lines that stand in options, such as those of `git -c alias.x=!rm`."""
    if name not in _TEXT_OPTION_PROGRAMS:
        return []
    texts: list[str] = []
    for at, word in enumerate(words[1:], 1):
        found = _TEXT_OPTIONS.match(word.text)
        if found is None:
            if name == "env" and word.text.startswith("-") and "S" in word.text[1:]:
                texts.append(word.text.partition("S")[2] or " ".join(w.text for w in words[at + 1 :]))
            continue
        value = found["value"] or (words[at + 1].text if at + 1 < len(words) else "")
        if name == "git" and word.text == "-c":
            value = value.partition("=")[2]
            if not value:
                continue  # no setting: `git switch -c branch`
        value = value.removeprefix("exec=").lstrip("!")
        if name == "env":
            value = " ".join([value, *(w.text for w in words[at + 2 :])])
        texts.append(value)
    if name == "git" and "foreach" in (w.text for w in words):
        texts.extend(w.text for w in words[1:])
    return texts
