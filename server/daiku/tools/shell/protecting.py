"""After a command: move its changes to protected files aside, report them, restore them on approval."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from daiku.domain.events import Notice
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.dangers import is_installation
from daiku.guard.rules.commands.network import named_program
from daiku.guard.sandbox.aside import (
    ActingFile,
    Before,
    Changed,
    QuarantinedFile,
    changed_since,
    quarantine,
    release,
)
from daiku.texts.text import Text, joined, text
from daiku.tools.tool import ToolContext

MOST_NAMED = 8
KEEP = text("shell.put_back")
LEAVE = text("shell.leave_aside")
TOO_LARGE = text("shell.too_large_to_look")
_ENVIRONMENTS = frozenset({"venv", "virtualenv"})
"""Programs and sub-commands that fill a Python environment."""


@cache
def _for_this_process() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="daiku-aside-")


async def quarantine_changes(
    earlier: Before | None, folder: Path | None, context: ToolContext, command: str, *, sandboxed: bool
) -> tuple[QuarantinedFile, ...]:
    """Put changed protected files aside since `earlier`, and report it. Without a sandbox they are only
    reported, since the person allowed it; an incomplete scan is reported too. Files that fetch an address
    stay if the user is there to read the report."""
    if earlier is None:
        return ()
    target = (folder or Path(_for_this_process().name)) / context.session
    try:
        changed = await asyncio.to_thread(changed_since, earlier)
        if not changed.complete:
            context.emit(Notice(level="warning", text=TOO_LARGE))
        _report_programs(changed, context, command)
        acting = [each for each in changed.acting if not (each.is_link and context.personal)]
        harmful = [each for each in acting if each.restores and (each.runs_code or context.ask is None)]
        _report_acting([each for each in acting if not sandboxed or each not in harmful], context)
        if not sandboxed:
            return _only_told(changed, context)
        places = (*changed.places, *((each.root, each.place) for each in harmful))
        moved = await asyncio.to_thread(quarantine, earlier, places, target)
    except OSError as error:
        said = text("shell.not_put_aside", why=str(error))
        context.emit(Notice(level="error", text=said))
        return ()
    if moved:
        said = text("shell.aside", paths=path_list(moved), folder=str(moved[0].kept.parent))
        context.emit(Notice(level="warning", text=joined("lines", [said, *map(_describe, harmful)])))
    return moved


def _only_told(changed: Changed, context: ToolContext) -> tuple[QuarantinedFile, ...]:
    if changed.places:
        made = join_paths([str(place) for _, place in changed.places])
        said = text("shell.made", paths=made)
        context.emit(Notice(level="warning", text=said))
    return ()


def _describe(acting: ActingFile) -> Text:
    return text("guard.of_path", path=str(acting.place), why=acting.why)


def _report_acting(acting: Sequence[ActingFile], context: ToolContext) -> None:
    if acting:
        lines = [text("shell.acting"), *map(_describe, acting[:MOST_NAMED])]
        context.emit(Notice(level="warning", text=joined("lines", lines)))


def _report_programs(changed: Changed, context: ToolContext, command: str) -> None:
    if changed.programs and not _fills_packages(command):
        paths = join_paths([str(place) for place in changed.programs])
        context.emit(Notice(level="warning", text=text("shell.programs_changed", paths=paths)))


def _fills_packages(command: str) -> bool:
    commands = read_script(command).commands
    named = (named_program(simple.words) for simple in commands if simple.words)
    return is_installation(commands) or any(_ENVIRONMENTS & {name, *texts[:1]} for name, texts in named)


async def ask_to_put_back(
    moved: tuple[QuarantinedFile, ...], context: ToolContext
) -> tuple[QuarantinedFile, ...]:
    """Ask the person, where one is there, and put back what is wanted; what is still aside."""
    if not moved or context.ask is None:
        return moved
    question = text("shell.shall_take_effect", paths=path_list(moved))
    offered = (LEAVE, KEEP)
    if (await context.ask(question, offered)).choice != offered.index(KEEP):
        return moved
    for each in moved:
        await asyncio.to_thread(release, each)
    return ()


def path_list(moved: tuple[QuarantinedFile, ...]) -> str:
    """Return the places of files put aside, shortened."""
    return join_paths([str(each.place) for each in moved])


def join_paths(places: Sequence[str]) -> str:
    """Join the first of `places`, with the number of the others."""
    first = ", ".join(places[:MOST_NAMED])
    return first + (f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else "")


def aside_note(moved: tuple[QuarantinedFile, ...]) -> str:
    """Return the note to the model about files put aside; empty if there are none."""
    if not moved:
        return ""
    return (
        f"Not in effect: the command made or changed protected files, and they were put aside: {path_list(moved)}. "
        "Only a person can put them back; to change such a file, use files__write or files__edit, which asks."
    )
