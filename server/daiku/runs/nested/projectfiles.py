"""Project files for a stage's prompt: the text of the relevant ones, as far as it fits, and a map of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from daiku.core.plans.transitions import find_step
from daiku.core.ports import Workspace
from daiku.core.text.patterns import lazy
from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError
from daiku.domain.work.handovers import Brief, EditsMade
from daiku.workspace.walk import files

CODE_LIMIT = 40_000
"""Characters of files that a stage is shown."""
FILE_LIMIT = 16_000
"""A longer file is named, and read by the stage itself where it needs it."""
MOST_NAMED = 12
"""Files of the work's own words that are shown."""
MOST_LISTED = 120
MAP_TOKENS = 1000
See = Callable[[Path, str], None]
"""Hears that a model was shown the whole text of a file."""
_PATH = lazy(r"[\w.@+-]+(?:/[\w.@+-]+)*\.\w+|[\w.@+-]+(?:/[\w.@+-]+)+|Makefile|Dockerfile")


@dataclass(frozen=True, slots=True)
class FileToShow:
    """A file to be shown. `guessed`: a word that looks like a path, which may be none."""

    path: str
    deleted: bool = False
    guessed: bool = False


def changed_files(edits: EditsMade | None) -> tuple[FileToShow, ...]:
    """Return the changed files as places to show."""
    stats = edits.files if edits is not None else ()
    return tuple(FileToShow(stat.path, deleted=stat.kind == "delete") for stat in stats)


def places_of(brief: Brief) -> tuple[FileToShow, ...]:
    """The files that a stage's work is about: those that were changed, then those that its request and its
    step (without one, its plan) seem to name."""
    plan = brief.plan
    step = find_step(plan, brief.step_id) if plan is not None and brief.step_id else None
    steps = (step,) if step is not None else plan.steps if plan is not None else ()
    said = [brief.request]
    for each in steps:
        said += [each.name, each.description, *each.acceptance]
    known = changed_files(brief.edits)
    named = dict.fromkeys(path.removeprefix("./") for text in said for path in _PATH.findall(text))
    for place in known:
        named.pop(place.path, None)
    return (*known, *(FileToShow(path, guessed=True) for path in named))


async def shown_files(places: Iterable[FileToShow], workspace: Workspace, see: See) -> str:
    """The files as they are now, as many as there is room for; the others are named. `see` hears of each
    that is shown whole."""
    from daiku.core.edits.fileblocks import render_file_blocks  # when used

    shown: list[tuple[str, str]] = []
    others: list[str] = []
    room, guesses = CODE_LIMIT, 0
    for place in places:
        path = place.path
        if place.deleted:
            others.append(f"`{path}` was deleted.")
            continue
        if place.guessed:
            if guesses >= MOST_NAMED or not await _may_be_shown(path, workspace):
                continue
            guesses += 1
        try:
            text = (await workspace.read(path)).text
        except DaikuError as error:
            others.append(f"`{path}`: {error.failure.message}")
            continue
        if len(text) > min(FILE_LIMIT, room):
            others.append(f"`{path}` has {len(text)} characters: files__read shows it.")
            continue
        room -= len(text)
        shown.append((path, text))
        see(workspace.locate(path), text)
    return "\n\n".join(part for part in (render_file_blocks(shown), "\n".join(others)) if part)


async def _may_be_shown(path: str, workspace: Workspace) -> bool:
    """Whether a word names a file that is shown without being asked for: no secrets, nothing hidden."""
    from daiku.core.protected.paths import holds_secrets  # when used

    try:
        real = workspace.locate(path)
        there = real.is_file() and await workspace.exists(path)
    except (DaikuError, OSError, ValueError):
        return False
    if not there or real.suffix == ".ipynb" or workspace.hidden(real) or workspace.ignored(real):
        return False
    return not holds_secrets(path) and not holds_secrets(workspace.relative(real))


async def project_files(workspace: Workspace) -> str:
    """The names of the project's files and what the most used of them define, both bounded."""
    from daiku.tools.files.mapping import repository_map  # when used

    names = [workspace.relative(path) for path in islice(files(workspace.roots), MOST_LISTED + 1)]
    if not names:
        return ""
    more = "\n[… more; files__list shows them …]" if len(names) > MOST_LISTED else ""
    drawn = await repository_map(workspace, (), MAP_TOKENS)
    listed = "\n".join(names[:MOST_LISTED]) + more
    return f"{listed}\n\nWhat they define:\n{drawn}" if drawn else listed
