"""Tasks of an evaluation, read from `task.toml`, and copies of their repositories for runs."""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import os
import shutil
import stat
import tomllib
import types
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

from pathspec import GitIgnoreSpec
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

import daiku
from daiku.dataclass import dataclass
from daiku.domain.base import Frozen
from daiku.domain.errors import Failure, UsageError
from daiku.domain.runs import Mode, RunLimits
from daiku.store.copyfolders import clear_path, write_file
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.git.worktrees import IDENTITY
from daiku.tools.shell.environment import CommandEnd, CommandPlace, run_argv, run_line
from daiku.tools.shell.gitsettings import FOR_TOOLS, to_git_env
from daiku.workspace.ignores import IgnoreFiles
from daiku.workspace.programs import find_program

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


GIT_SECONDS, SETUP_SECONDS = 600, 1200
ANSWER = ".daiku-answer.txt"
"""File with the model's last answer, for checks."""
WHEN = "2026-01-01T00:00:00Z"
"""Fixed time of the first commit, so that equal copies have equal commits."""
_COMMITTED = {**to_git_env(FOR_TOOLS), **IDENTITY, "GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Content and mode of files by path; of links the target and S_IFLNK."""

    files: dict[str, tuple[bytes, int]]


async def make_copy(task: Task, where: CommandPlace, *, network: bool = False) -> Text:
    """Copy the task's repository into the empty `where.folder`, set it up, and create a first commit.

    Returns the problem, empty on success. `network`: the user allowed network access. Raises OSError.
    """
    source = task.file.source
    if stray := await asyncio.to_thread(find_stray, task):
        return text("eval.stray", name=stray)
    if source is not None:
        problem = await _clone_repository(source, task.folder, where)
    else:
        copy = partial(shutil.copytree, symlinks=True, dirs_exist_ok=True)
        await asyncio.to_thread(copy, task.folder / FILES, where.folder)
        problem = NO_TEXT
    for line in () if problem else task.file.setup:
        result = await run_line(line, where, SETUP_SECONDS, network=network and task.file.network)
        if result.code != 0:
            return text("eval.setup_failed", command=line, code=result.code, output=_get_output_end(result))
    return problem or (NO_TEXT if source is not None else await _create_commit(where))


async def _clone_repository(source: GitSource, folder: Path, where: CommandPlace) -> Text:
    local = folder / source.git
    address = str(local.resolve()) if local.exists() else source.git
    env = {"GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git"}
    for argv in (
        ["clone", "--quiet", "--no-checkout", "--no-hardlinks", "--", address, "."],
        ["checkout", "--quiet", "--detach", source.commit],
        ["remote", "remove", "origin"],
    ):
        result = await run_argv(
            [find_program("git"), *argv], where, GIT_SECONDS, network=True, bare=True, extra_env=env
        )
        if result.code != 0:
            return text("eval.git_failed", command=" ".join(["git", *argv]), output=_get_output_end(result))
    return NO_TEXT


async def _create_commit(where: CommandPlace) -> Text:
    for argv in (
        ["init", "--quiet", "--initial-branch=main"],
        ["-c", "core.autocrlf=false", "add", "--all"],
        ["-c", "commit.gpgSign=false", "commit", "--quiet", "--no-verify", "--message", "Start"],
    ):
        # Sandboxed: the task's git settings and hooks may start programs.
        result = await run_argv([find_program("git"), *argv], where, GIT_SECONDS, extra_env=_COMMITTED)
        if result.code != 0:
            return text("eval.git_failed", command=" ".join(["git", *argv]), output=_get_output_end(result))
    return NO_TEXT


def find_stray(task: Task) -> str:
    """Return the first entry of the task's folders that is not a file, folder, or inner link, else ""."""
    for name in (FILES, CHECK_FILES):
        top = task.folder / name
        if not top.is_symlink() and not top.is_dir():
            continue
        links: dict[tuple[int, int], list[Path]] = {}
        for place in (
            top,
            *(Path(base) / each for base, inner, files in os.walk(top) for each in (*inner, *files)),
        ):
            info = place.lstat()
            if not _is_inside(place, info.st_mode, top):
                return str(place.relative_to(task.folder))
            if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
                links.setdefault((info.st_dev, info.st_ino), []).append(place)
        outside = [places[0] for places in links.values() if len(places) < places[0].lstat().st_nlink]
        if outside and not task.builtin:
            return str(outside[0].relative_to(task.folder))
    return ""


def _is_inside(place: Path, mode: int, top: Path) -> bool:
    if place.name.lower() == ".git":
        return False
    if not stat.S_ISLNK(mode):
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return (
        place != top and not place.readlink().is_absolute() and place.resolve().is_relative_to(top.resolve())
    )


def _get_output_end(result: CommandEnd) -> str:
    return result.output.strip()[-400:]


def take_snapshot(folder: Path, patterns: Sequence[str]) -> Snapshot:
    """Read the files below `folder` that match `patterns` (as in .gitignore). Raises OSError."""
    files: dict[str, tuple[bytes, int]] = {}
    for name in _find_matches(folder, patterns):
        path = folder / name
        if path.is_symlink():  # never the target, which may be outside
            files[name] = (os.fsencode(path.readlink()), stat.S_IFLNK)
        else:
            files[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return Snapshot(files)


def find_changed(folder: Path, patterns: Sequence[str], before: Snapshot) -> tuple[str, ...]:
    """Return the changed, deleted, or new files that match `patterns`.

    New ones that git ignores, such as those of interpreters and compilers, do not count. Raises OSError.
    """
    ignores = IgnoreFiles(folder, (".gitignore",))
    return tuple(
        name
        for name in _find_differences(folder, patterns, before)
        if name in before.files or not ignores.hides(folder / name, folder=False)
    )


def _find_differences(folder: Path, patterns: Sequence[str], before: Snapshot) -> list[str]:
    now = take_snapshot(folder, patterns).files
    spec = GitIgnoreSpec.from_lines(patterns)
    names = {*now, *(name for name in before.files if spec.match_file(name))}
    return sorted(name for name in names if now.get(name) != before.files.get(name))


def restore(folder: Path, patterns: Sequence[str], before: Snapshot, task: Task) -> None:
    """Restore the files that match `patterns`, delete new ones, and copy the task's check files.

    Overwrites whatever the run put in their place. Raises OSError.
    """
    for name in _find_differences(folder, patterns, before):
        if (old := before.files.get(name)) is None:
            (folder / name).unlink(missing_ok=True)
        elif old[1] == stat.S_IFLNK:
            clear_path(folder, name).symlink_to(os.fsdecode(old[0]))
        else:
            write_file(folder, name, *old)
    own = task.folder / CHECK_FILES
    for path in sorted(own.rglob("*")) if own.is_dir() else ():
        if path.is_file():  # links stay inside (find_stray)
            write_file(
                folder, path.relative_to(own).as_posix(), path.read_bytes(), path.stat().st_mode & 0o777
            )


def write_answer(folder: Path, answer: str) -> None:
    """Write the model's last answer for the checks. Raises OSError."""
    write_file(folder, ANSWER, answer.encode("utf-8", "replace"), 0o644)


def _find_matches(folder: Path, patterns: Sequence[str]) -> list[str]:
    """Return matching files and links below `folder`; links are not followed, and `.git` is skipped."""
    spec = GitIgnoreSpec.from_lines(patterns)
    matches: list[str] = []
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        names = ((Path(base) / name).relative_to(folder).as_posix() for name in files)
        matches += [name for name in names if spec.match_file(name) and _is_file_or_link(folder / name)]
    return sorted(matches)


def _is_file_or_link(path: Path) -> bool:
    return path.is_symlink() or path.is_file()
