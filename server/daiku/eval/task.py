"""Tasks of an evaluation: a repository, a request, and checks; read from `task.toml`."""

from __future__ import annotations

import difflib
import fnmatch
import tomllib
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

import daiku
from daiku.domain.base import Frozen
from daiku.domain.errors import Failure, UsageError
from daiku.domain.runs import Mode, RunLimits
from daiku.texts.text import Text, joined, text

BUILTIN = "builtin"
LARGEST = 200_000
"""Maximum size of a `task.toml` in bytes."""
TASK_FILE = "task.toml"
FILES, CHECK_FILES = "files", "checks"
"""Folders next to `task.toml`: the repository, and files copied over it before the checks."""
Line = Annotated[str, Field(min_length=1, max_length=4000)]


class GitSource(Frozen):
    """An existing repository: its URL or path (relative to the task), and the commit to start from."""

    git: Line
    commit: Line


class Checks(Frozen):
    """Checks after a run.

    `commands` must exit with 0. Files that match `unchanged` must not change. Files that match `restored` are
    restored before the commands, and new ones deleted. `seconds` is the timeout of each command. The model's
    last answer is in the file `$DAIKU_ANSWER`.
    """

    commands: Annotated[tuple[Line, ...], Field(min_length=1)]
    unchanged: tuple[Line, ...] = ()
    restored: tuple[Line, ...] = ()
    seconds: int = Field(default=120, ge=1, le=3600)


class TaskLimits(Frozen):
    """Limits of one run of this task; None: as in the settings."""

    max_rounds: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: int | None = Field(default=None, ge=1)

    def over(self, limits: RunLimits) -> RunLimits:
        """Return the limits of a run: these, else the settings'."""
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class TaskFile(Frozen):
    """Contents of `task.toml`.

    `needs`: programs on PATH without which the task is skipped. `setup`: commands that run once in the copy;
    `network`: they need network access. Without `source`, the copy is made from `files/`.
    """

    summary: Line
    request: Line
    language: Line
    checks: Checks
    mode: Mode = "act"
    needs: tuple[Line, ...] = ()
    setup: tuple[Line, ...] = ()
    network: bool = False
    source: GitSource | None = None
    limits: TaskLimits = TaskLimits()


class Task(Frozen):
    """A task with its name and folder. `builtin`: it is part of Daiku."""

    name: str
    folder: Path
    file: TaskFile
    builtin: bool = False


def parse_task(content: str, where: str) -> TaskFile:
    """Parse a task from TOML; `where` is the name of the file.

    Raises UsageError with every invalid key, each with the nearest valid one.
    """
    try:
        return TaskFile.model_validate(tomllib.loads(content))
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise _build_usage_error(text("eval.task.not_toml", where=where, what=str(wrong))) from wrong
    except ValidationError as wrong:
        problems = [_format_problem(error, where) for error in wrong.errors(include_url=False)]
        raise _build_usage_error(joined("sentences", dict.fromkeys(problems))) from wrong


def _format_problem(error: ErrorDetails, where: str) -> Text:
    name = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(str(error["loc"][-1]), _list_keys(error["loc"][:-1]), 1)
            if near:
                return text("eval.task.unknown_near", where=where, name=name, near=near[0])
            return text("eval.task.unknown", where=where, name=name)
        case "missing":
            return text("eval.task.missing", where=where, name=name)
        case _:
            return text("eval.task.wrong", where=where, name=name, what=error["msg"])


def _list_keys(place: tuple[int | str, ...]) -> list[str]:
    """Return the valid keys of the table at `place`."""
    table: type[BaseModel] = TaskFile
    for part in place:
        info = table.model_fields.get(str(part))
        if info is None:
            return []
        table = next((kind for kind in _list_types(info.annotation) if issubclass(kind, BaseModel)), TaskFile)
    return list(table.model_fields)


def _list_types(annotation: Any) -> list[type]:
    parts = get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return [part for part in parts if isinstance(part, type)]


def _build_usage_error(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=text("eval.task.hint")))


def find_builtin_folder() -> Path:
    """Return the folder of the built-in tasks: of the checkout, or of the installed package."""
    package = Path(daiku.__file__).parent
    installed = package / "_evals"
    return installed if installed.is_dir() else package.parent / "evals"


def is_builtin(folder: Path) -> bool:
    """Return True for the folder of the built-in tasks, and for each of them."""
    return folder.resolve().is_relative_to(find_builtin_folder().resolve())


def read_tasks(folder: Path) -> tuple[Task, ...]:
    """Read the tasks of `folder`, or the one task that it is, by name. Raises UsageError."""
    places = (
        [folder]
        if (folder / TASK_FILE).is_file()
        else sorted(p.parent for p in folder.glob(f"*/{TASK_FILE}"))
    )
    if not places:
        message = text("eval.no_tasks", folder=str(folder))
        raise UsageError(Failure(kind="usage", message=message, hint=text("eval.task.hint")))
    return tuple(_read_task(place.resolve()) for place in places)


def _read_task(place: Path) -> Task:
    path = place / TASK_FILE
    try:
        if path.stat().st_size > LARGEST:
            raise _refuse_unreadable(path, "it is too large")
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise _refuse_unreadable(path, str(wrong)) from wrong
    file = parse_task(content, str(path))
    if file.source is None and not (place / FILES).is_dir():
        raise UsageError(
            Failure(
                kind="usage", message=text("eval.task.no_files", where=str(path)), hint=text("eval.task.hint")
            )
        )
    return Task(name=place.name, folder=place, file=file, builtin=is_builtin(place))


def choose_tasks(tasks: Sequence[Task], patterns: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks whose name or language matches one of `patterns` (`*`, `?`); all without patterns.

    Raises UsageError if none matches.
    """
    chosen = tuple(
        task
        for task in tasks
        if not patterns
        or any(fnmatch.fnmatchcase(name, p) for p in patterns for name in (task.name, task.file.language))
    )
    if not chosen:
        message = text("eval.none_fits", patterns=", ".join(patterns))
        raise UsageError(Failure(kind="usage", message=message, hint=text("eval.see_list")))
    return chosen


def _refuse_unreadable(path: Path, what: str) -> UsageError:
    return UsageError(Failure(kind="usage", message=text("eval.task.unread", where=str(path), what=what)))
