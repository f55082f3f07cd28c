"""A task of an evaluation: a repository, a request, checks; read from `task.toml`."""

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
"""Bytes of a `task.toml`."""
TASK_FILE = "task.toml"
FILES, CHECK_FILES = "files", "checks"
"""Folders beside `task.toml`: the repository, and what is laid over it before the checks."""
Line = Annotated[str, Field(min_length=1, max_length=4000)]


class GitSource(Frozen):
    """A repository that exists: an address or a path (relative to the task), and the commit to start from."""

    git: Line
    commit: Line


class Checks(Frozen):
    """What must hold afterwards. `commands` must exit with 0; files that match `unchanged` must be as they
    were; files that match `restored` are put back before the commands run, new ones among them taken away.
    `seconds` bounds each command. A command finds the model's last answer in the file `$DAIKU_ANSWER`."""

    commands: Annotated[tuple[Line, ...], Field(min_length=1)]
    unchanged: tuple[Line, ...] = ()
    restored: tuple[Line, ...] = ()
    seconds: int = Field(default=120, ge=1, le=3600)


class TaskLimits(Frozen):
    """Limits of one run of this task; what is not named is as the settings say."""

    max_rounds: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: int | None = Field(default=None, ge=1)

    def over(self, limits: RunLimits) -> RunLimits:
        """The limits of a run: these, and the settings' where nothing is said."""
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class TaskFile(Frozen):
    """What `task.toml` holds. `needs` are programs on PATH without which the task is skipped. `setup` are
    commands run once in the fresh copy; `network`: they need it. Without `source` the copy is made of `files/`."""

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
    """A task with its name and the folder that it was read from. `builtin`: it comes with Daiku."""

    name: str
    folder: Path
    file: TaskFile
    builtin: bool = False


def parse_task(written: str, where: str) -> TaskFile:
    """The task that `written` (TOML) describes; `where` names the file. Raises UsageError with every wrong
    key, each with the nearest right one."""
    try:
        return TaskFile.model_validate(tomllib.loads(written))
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise _usage(text("eval.task.not_toml", where=where, what=str(wrong))) from wrong
    except ValidationError as wrong:
        found = [_problem(error, where) for error in wrong.errors(include_url=False)]
        raise _usage(joined("sentences", dict.fromkeys(found))) from wrong


def _problem(error: ErrorDetails, where: str) -> Text:
    name = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(str(error["loc"][-1]), _names_at(error["loc"][:-1]), 1)
            if near:
                return text("eval.task.unknown_near", where=where, name=name, near=near[0])
            return text("eval.task.unknown", where=where, name=name)
        case "missing":
            return text("eval.task.missing", where=where, name=name)
        case _:
            return text("eval.task.wrong", where=where, name=name, what=error["msg"])


def _names_at(place: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at `place`."""
    table: type[BaseModel] = TaskFile
    for part in place:
        info = table.model_fields.get(str(part))
        if info is None:
            return []
        table = next((kind for kind in _kinds(info.annotation) if issubclass(kind, BaseModel)), TaskFile)
    return list(table.model_fields)


def _kinds(annotation: Any) -> list[type]:
    parts = get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return [part for part in parts if isinstance(part, type)]


def _usage(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=text("eval.task.hint")))


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
