"""Compare the files that a command edits in place or names, before and after it."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping
from glob import glob
from hashlib import blake2b
from itertools import islice, product
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.judge import LOOKING, changes_folder, read_only
from daiku.guard.rules.commands.wrappers import program_name
from daiku.texts.rules.patterns import lazy

_EDITORS = frozenset({"sed", "gsed", "perl"})
_IN_PLACE = lazy(r"-[A-Za-z0-9]*i|--in-place")
"""Matches the in-place option without a backup suffix: a backup would be another file."""


def find_edited_words(command: str) -> tuple[str, ...]:
    """Return the operands of `command` if it only reads and edits files in place.

    Empty if it may change anything else, or edits nothing.
    """
    script = read_script(command)
    if script.broken or script.doubts or script.writes or changes_folder(command):
        return ()
    operands: list[str] = []
    for simple in script.commands:
        if program_name(simple.words) in _EDITORS and any(map(_IN_PLACE.fullmatch, simple.texts)):
            operands += [word for word in simple.texts[1:] if not word.startswith("-")]
        elif not read_only(shlex.join(simple.texts), LOOKING):
            return ()
    return tuple(operands)


MAX_BYTES = 5_000_000
"""Bytes of the largest file that is compared."""
MAX_PATHS = 100
"""Paths in a command that are checked."""
_PATH = lazy(r"[^\s'\"`=<>|;&(){},:]+")


class CommandFiles(NamedTuple):
    """Digests of the files that a command edits in place, and of those that it names."""

    edited: Mapping[str, str]
    named: Mapping[Path, str]


def read_files(command: str, folder: Path) -> CommandFiles:
    """Return the digests of the files of `command`, which runs in `folder`. Blocks."""
    return CommandFiles(read_edited_files(command, folder), read_named_files(command, folder))


def read_edited_files(command: str, folder: Path) -> Mapping[str, str]:
    """Return the digests, by path, of all files that `command`, run in `folder`, can change. Blocks.

    Empty if they are unknown, or if one is too large or not a regular file.
    """
    digests: dict[str, str] = {}
    for word in find_edited_words(command):
        for path in glob(word, root_dir=folder, include_hidden=True):  # noqa: PTH207  # a word may be an absolute path
            if not (digest := _hash_file(folder / path)):
                return {}
            digests[path] = digest
    return digests


def read_named_files(command: str, folder: Path) -> Mapping[Path, str]:
    """Return the digests of the files below `folder` that the text of `command` names. Blocks."""
    words = [*islice(dict.fromkeys(_PATH.findall(command)), MAX_PATHS)]
    folders = [folder, *(folder / word for word in words if (folder / word).is_dir())]  # after `cd`
    paths = (Path(normpath(start / word)) for start, word in product(folders, words))
    below = (path for path in islice(paths, MAX_PATHS) if path.is_relative_to(folder))
    return {path: digest for path in below if (digest := _hash_file(path))}


def is_unchanged(before: CommandFiles, after: CommandFiles) -> bool | None:
    """Return True if a command changed none of the files that it edits, False if it changed a file; None if unknown."""
    if before != after:
        return False
    return True if before.edited else None


def _hash_file(path: Path) -> str:
    """Return the digest of a file; empty if it is missing, too large, or no regular file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return ""
        # Files of /proc have no size; some never end a read.
        return blake2b(path.read_bytes() if status.st_size else b"").hexdigest()
    except (OSError, ValueError):
        return ""
