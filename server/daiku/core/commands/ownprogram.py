"""Daiku called by a command of its own agent: it would change what Daiku learns and may do, or begin runs of its own."""

from __future__ import annotations

import re
from types import MappingProxyType

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.wrappers import program_name
from daiku.core.text.patterns import lazy

_ANY = frozenset({""})
_LOOKS: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "--help": _ANY,
        "--version": _ANY,
        "agents": _ANY,
        "config": frozenset({"show"}),
        "doctor": _ANY,
        "grants": frozenset({"list"}),
        "mcp": frozenset({"list"}),
        "models": _ANY,
        "playbook": frozenset({"list", "search", "show", "deltas"}),
        "prompts": frozenset({"list", "show"}),
        "sessions": frozenset({"list", "show"}),
        "tools": _ANY,
        "work": frozenset({"list", "show"}),
    }
)
"""What only looks: the first word behind `daiku`, and the second one where it matters."""
_OURS = frozenset({"-mdaiku", "-mdaiku.__main__"})
_PYTHON = lazy(r"(?:python|pypy)[\d.]*|py")


def changes_daiku(simple: SimpleCommand) -> bool:
    """Whether a command calls Daiku for more than a look. An option before the words that say what for is not read."""
    words = _behind_daiku(simple)
    if words is None:
        return False
    first, second = (*words, "", "")[:2]
    allowed = _LOOKS.get(first)
    return allowed is None or (allowed is not _ANY and second not in allowed)


def _behind_daiku(simple: SimpleCommand) -> tuple[str, ...] | None:
    """The words that Daiku is called with; None where it is not called."""
    name = re.sub(r"\.exe$", "", program_name(simple.words))
    words = simple.texts[1:]
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
