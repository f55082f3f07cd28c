"""How the actor reads advice: as somebody who knows English and nothing of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.playbook.world.drawn import Convention, Kind

_SPAN = re.compile(r"`([^`\n]+)`")
_MARK = re.compile(r"^\s*\[([^\]\s]+)\]\s*")
_WORDS = re.compile(r"[a-z][a-z0-9]*")
_BEFORE = re.compile(
    r"(?:\bnot|\bnever|\bavoid|n't|\binstead of|\brather than|\bno longer)(?:\s+\w+){0,2}\s*[\"'(]?\s*$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"^[\"')]?\s*(?:(?:always|only|also|it)\s+)?(?:fails?\b|failed\b|breaks?\b|is wrong|was wrong|is gone|no longer|is not|was not"
    r"|does not|do not|did not|doesn't|didn't|will not|won't)",
    re.IGNORECASE,
)
_SHELL = frozenset("|&;<>$(){}\\*?!\"'\n")
"""Signs with which a command is more than one program with its words: nobody here advises such a thing."""


class Read(NamedTuple):
    """What one text says on a task: what to do, what not, and the mark by which the text is cited."""

    text: str
    mark: str
    wanted: tuple[str, ...]
    warned: tuple[str, ...]


def read(text: str, convention: Convention) -> Read | None:
    """What a text says on a task; None where it is about something else."""
    words = _words(text)
    if not all(any(word in words for word in group) for group in convention.about):
        return None
    mark = _MARK.match(text)
    wanted: dict[str, None] = {}
    warned: dict[str, None] = {}
    for start, end, said in _named(text, convention.likely):
        if _is_of(said, convention):
            bad = _BEFORE.search(text[max(0, start - 40) : start]) or _AFTER.match(text[end : end + 40])
            (warned if bad else wanted)[said] = None
    return Read(text, mark[1] if mark else "", tuple(wanted), tuple(warned))


def _named(text: str, likely: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """The pieces of code in a text, in their order: what is marked as such, and what seemed likely anyway."""
    found = [(each.start(), each.end(), each[1].strip()) for each in _SPAN.finditer(text)]
    plain = _SPAN.sub(lambda each: " " * len(each[0]), text)
    for one in likely:
        found += [
            (each.start(), each.end(), one)
            for each in re.finditer(rf"(?<![\w./-]){re.escape(one)}(?![\w-])", plain)
        ]
    yield from sorted(found)


def _is_of(said: str, convention: Convention) -> bool:
    """Whether a piece of code can be what a task is done by."""
    kind: Kind = "folder" if said.endswith("/") else "command" if _is_command(said) else "ending"
    return kind == convention.kind and _words(said).isdisjoint(convention.strange)


def _is_command(said: str) -> bool:
    return _SHELL.isdisjoint(said) and (" " in said or said.startswith("./") or said[:1].isalpha())


def _words(text: str) -> frozenset[str]:
    """The words of a text, of which several are as one."""
    found = _WORDS.findall(text.lower())
    return frozenset((*found, *(each[:-1] for each in found if each.endswith("s"))))
