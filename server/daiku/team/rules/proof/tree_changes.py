"""Parse the changes of a work tree from `git diff`: the files, and unfinished lines that were added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from daiku.domain.work.patches import FileKind, FileStat
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import Leftover, find_leftover, merge_leftovers
from daiku.texts.rules.patterns import lazy

_HUNK = lazy(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_QUOTED = lazy(r'"(.*)"')
_KINDS: dict[str, FileKind] = {"A": "create", "D": "delete"}
LONGEST_LINE = 2_000
"""Maximum characters of a line that are searched: minified code has lines of megabytes."""


class TreeChanges(NamedTuple):
    """Difference between two states of a work tree, whatever made it."""

    files: tuple[FileStat, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


def parse_tree_changes(listing: str, patch: str) -> TreeChanges:
    """Parse the output of `git diff -z --raw --numstat --no-renames` and of `git diff -U0 --no-renames`."""
    return TreeChanges(tuple(_parse_files(listing)), merge_leftovers((), _parse_leftovers(patch)))


def replace_recorded(evidence: Evidence, changes: TreeChanges) -> Evidence:
    """Return the evidence with files and leftovers from the tree instead of from edit events."""
    return evidence._replace(files=changes.files, leftovers=changes.leftovers)


def _parse_files(listing: str) -> Iterator[FileStat]:
    kinds: dict[str, FileKind] = {}
    fields = iter(listing.split("\0"))
    for field in fields:
        if field.startswith(":"):
            kinds[next(fields, "")] = _KINDS.get(field.rsplit(" ", 1)[-1][:1], "edit")
        elif field:
            added, removed, path = field.split("\t", 2)
            name = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            kind = kinds.get(path, "edit")
            yield FileStat(path=name, kind=kind, added=_parse_count(added), removed=_parse_count(removed))


def _parse_count(number: str) -> int:
    """Parse a line count; git writes `-` for a binary file."""
    return int(number) if number.isdecimal() else 0


def _parse_leftovers(patch: str) -> Iterator[Leftover]:
    path, remaining = "", 0
    for line in patch.split("\n"):
        if remaining and not line.startswith("\\"):
            remaining -= 1
            if (leftover := find_leftover(path, line[:LONGEST_LINE])) is not None:
                yield leftover
        elif (hunk := _HUNK.match(line)) is not None:
            remaining = sum(int(count or 1) for count in hunk.groups())
        elif not remaining and line.startswith(("--- ", "+++ ")):
            path = _parse_path(line[4:].split("\t")[0]) or path


def _parse_path(name: str) -> str:
    """Return the path of a header line; empty for `/dev/null`."""
    quoted = _QUOTED.fullmatch(name)
    plain = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted is not None else name
    return "" if plain == "/dev/null" else plain[2:]
