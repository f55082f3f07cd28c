"""Compare files before and after a command, and quarantine its changes to protected ones until they are approved."""

from __future__ import annotations

import asyncio
import shlex
import stat
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from glob import glob
from hashlib import blake2b
from itertools import islice, product
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

from daiku.domain.events import Notice
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.dangers import is_installation
from daiku.guard.rules.commands.judge import LOOKING, changes_folder, read_only
from daiku.guard.rules.commands.rules import named_program
from daiku.guard.rules.commands.wrappers import program_name
from daiku.guard.sandbox.aside import (
    ActingFile,
    Before,
    Changed,
    QuarantinedFile,
    changed_since,
    quarantine,
    release,
)
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, joined, text
from daiku.tools.tool import ToolContext

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
MAX_NAMED_PATHS = 100
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
    words = [*islice(dict.fromkeys(_PATH.findall(command)), MAX_NAMED_PATHS)]
    folders = [folder, *(folder / word for word in words if (folder / word).is_dir())]  # after `cd`
    paths = (Path(normpath(start / word)) for start, word in product(folders, words))
    below = (path for path in islice(paths, MAX_NAMED_PATHS) if path.is_relative_to(folder))
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


MAX_PATHS = 8
"""Paths that one notice lists."""
RESTORE_CHOICE = text("shell.put_back")
LEAVE_CHOICE = text("shell.leave_aside")
TOO_LARGE_NOTE = text("shell.too_large_to_look")
_ENVIRONMENTS = frozenset({"venv", "virtualenv"})
"""Programs and subcommands that install packages into a Python environment."""


@cache
def _quarantine_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="daiku-aside-")


async def quarantine_changes(
    earlier: Before | None, folder: Path | None, context: ToolContext, command: str, *, sandboxed: bool
) -> tuple[QuarantinedFile, ...]:
    """Quarantine protected files that changed since `earlier`, and report them.

    Without a sandbox the changes are only reported, because the user allowed the command. An incomplete scan
    is reported too. Files that fetch an address stay if the user is there to read the report.
    """
    if earlier is None:
        return ()
    target = (folder or Path(_quarantine_folder().name)) / context.session
    try:
        changed = await asyncio.to_thread(changed_since, earlier)
        if not changed.complete:
            context.emit(Notice(level="warning", text=TOO_LARGE_NOTE))
        _report_programs(changed, context, command)
        acting = [file for file in changed.acting if not (file.is_link and context.personal)]
        harmful = [file for file in acting if file.restores and (file.runs_code or context.ask is None)]
        _report_acting([file for file in acting if not sandboxed or file not in harmful], context)
        if not sandboxed:
            return _report_changes(changed, context)
        places = (*changed.places, *((file.root, file.place) for file in harmful))
        moved = await asyncio.to_thread(quarantine, earlier, places, target)
    except OSError as error:
        notice = text("shell.not_put_aside", why=str(error))
        context.emit(Notice(level="error", text=notice))
        return ()
    if moved:
        notice = text("shell.aside", paths=format_paths(moved), folder=str(moved[0].kept.parent))
        context.emit(Notice(level="warning", text=joined("lines", [notice, *map(_describe_file, harmful)])))
    return moved


def _report_changes(changed: Changed, context: ToolContext) -> tuple[QuarantinedFile, ...]:
    if changed.places:
        paths = join_paths([str(place) for _, place in changed.places])
        notice = text("shell.made", paths=paths)
        context.emit(Notice(level="warning", text=notice))
    return ()


def _describe_file(acting: ActingFile) -> Text:
    return text("guard.of_path", path=str(acting.place), why=acting.why)


def _report_acting(acting: Sequence[ActingFile], context: ToolContext) -> None:
    if acting:
        lines = [text("shell.acting"), *map(_describe_file, acting[:MAX_PATHS])]
        context.emit(Notice(level="warning", text=joined("lines", lines)))


def _report_programs(changed: Changed, context: ToolContext, command: str) -> None:
    if changed.programs and not _installs_packages(command):
        paths = join_paths([str(place) for place in changed.programs])
        context.emit(Notice(level="warning", text=text("shell.programs_changed", paths=paths)))


def _installs_packages(command: str) -> bool:
    commands = read_script(command).commands
    named = (named_program(simple.words) for simple in commands if simple.words)
    return is_installation(commands) or any(_ENVIRONMENTS & {name, *texts[:1]} for name, texts in named)


async def ask_to_restore(
    moved: tuple[QuarantinedFile, ...], context: ToolContext
) -> tuple[QuarantinedFile, ...]:
    """Ask the user whether to restore the files. Returns the files that stay in quarantine."""
    if not moved or context.ask is None:
        return moved
    question = text("shell.shall_take_effect", paths=format_paths(moved))
    choices = (LEAVE_CHOICE, RESTORE_CHOICE)
    if (await context.ask(question, choices)).choice != choices.index(RESTORE_CHOICE):
        return moved
    for file in moved:
        await asyncio.to_thread(release, file)
    return ()


def format_paths(moved: tuple[QuarantinedFile, ...]) -> str:
    """Format the paths of quarantined files, shortened."""
    return join_paths([str(each.place) for each in moved])


def join_paths(places: Sequence[str]) -> str:
    """Join the first MAX_PATHS of `places`, with the number of the others."""
    first = ", ".join(places[:MAX_PATHS])
    return first + (f" and {len(places) - MAX_PATHS} more" if len(places) > MAX_PATHS else "")


def format_quarantine_note(moved: tuple[QuarantinedFile, ...]) -> str:
    """Format the note to the model about quarantined files; empty if there are none."""
    if not moved:
        return ""
    return (
        f"Not in effect: the command made or changed protected files, and they were put aside: {format_paths(moved)}. "
        "Only a person can put them back; to change such a file, use files__write or files__edit, which asks."
    )
