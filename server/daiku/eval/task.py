"""A task of an evaluation: a repository, a request, checks; read from `task.toml`."""

from __future__ import annotations

import difflib
import tomllib
import types
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from daiku.domain.base import Frozen
from daiku.domain.errors import Failure, UsageError
from daiku.domain.runs import Mode, RunLimits
from daiku.texts.text import Text, joined, text

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
