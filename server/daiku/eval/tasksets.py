"""Sets of tasks: a folder of tasks read, or the tasks that come with Daiku; some of them chosen."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import daiku
from daiku.domain.errors import Failure, UsageError
from daiku.eval.task import FILES, TASK_FILE, Task, parse_task
from daiku.texts.text import text

BUILTIN = "builtin"
LARGEST = 200_000
"""Bytes of a `task.toml`."""


def builtin_folder() -> Path:
    """The folder of the tasks that come with Daiku: of the checkout, or of the installed package."""
    package = Path(daiku.__file__).parent
    shipped = package / "_evals"
    return shipped if shipped.is_dir() else package.parent / "evals"


def is_builtin(folder: Path) -> bool:
    """Return True for the folder of the tasks that come with Daiku, and for each of these tasks."""
    return folder.resolve().is_relative_to(builtin_folder().resolve())


def read_tasks(folder: Path) -> tuple[Task, ...]:
    """The tasks of `folder`, or the one that it is, by name. Raises UsageError: none, or one is wrong."""
    places = (
        [folder]
        if (folder / TASK_FILE).is_file()
        else sorted(p.parent for p in folder.glob(f"*/{TASK_FILE}"))
    )
    if not places:
        message = text("eval.no_tasks", folder=str(folder))
        raise UsageError(Failure(kind="usage", message=message, hint=text("eval.task.hint")))
    return tuple(_read(place.resolve()) for place in places)


def _read(place: Path) -> Task:
    path = place / TASK_FILE
    try:
        if path.stat().st_size > LARGEST:
            raise _unreadable(path, "it is too large")
        written = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise _unreadable(path, str(wrong)) from wrong
    file = parse_task(written, str(path))
    if file.source is None and not (place / FILES).is_dir():
        raise UsageError(
            Failure(
                kind="usage", message=text("eval.task.no_files", where=str(path)), hint=text("eval.task.hint")
            )
        )
    return Task(name=place.name, folder=place, file=file, builtin=is_builtin(place))


def choose(tasks: Sequence[Task], patterns: Sequence[str]) -> tuple[Task, ...]:
    """Those whose name or language fits one of `patterns` (`*` and `?` as in file names); all without any.
    Raises UsageError where none fits."""
    found = tuple(
        task
        for task in tasks
        if not patterns
        or any(fnmatch.fnmatchcase(name, p) for p in patterns for name in (task.name, task.file.language))
    )
    if not found:
        message = text("eval.none_fits", patterns=", ".join(patterns))
        raise UsageError(Failure(kind="usage", message=message, hint=text("eval.see_list")))
    return found


def _unreadable(path: Path, what: str) -> UsageError:
    return UsageError(Failure(kind="usage", message=text("eval.task.unread", where=str(path), what=what)))
