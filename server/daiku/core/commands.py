"""What a shell command would do, judged from its whole syntax tree: allow, ask or deny."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daiku.domain.config import Answer


@dataclass(frozen=True, slots=True)
class CommandRules:
    """What commands are judged by. `allow` and `deny` are the person's, as words that a command begins
    with. `resolve` gives a path's real name relative to its root, None where it is outside."""

    resolve: Callable[[str], str | None]
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    home: str = ""
    contained: bool = True
    """True where a sandbox holds what a read-only command may start (git's filters)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`answer` before settings and grants: allow = harmless or allowed by the person's list.

    `keys` are what "always" remembers, one for each part that needs a yes; empty = cannot be remembered.
    `understood`: the whole tree was read. `network`: it wants the network. `protected`: it would change
    protected files. `read_only`: every part only reads.
    """

    answer: Answer
    why: str
    keys: tuple[str, ...] = ()
    understood: bool = False
    network: bool = False
    protected: bool = False
    read_only: bool = False


def judge(command: str, rules: CommandRules) -> Judgement:
    """Judge `command`, a line for bash."""
    return Judgement("ask", "runs a command")
