"""The `contexts/` tree: a folder for each item by how it stands, its files, and the file that pauses everything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from daiku.core.work.tasklines import MessageLine, TaskStatus
from daiku.dataclass import dataclass
from daiku.domain.base import Frozen

Parent = Literal["running", "paused", "completed"]
"""The folders below `contexts/` in which those of tasks lie."""
PARENTS: tuple[Parent, ...] = ("running", "paused", "completed")
MESSAGES, CURRENT, REQUEST = "messages.jsonl", "current.jsonl", "request.json"
SUMMARIES, TOOLS, METADATA, STATE = "summaries.jsonl", "tools.jsonl", "metadata.json", "task_state.json"


def contexts_of(home: Path) -> Path:
    """The folder of all context files."""
    return home / "contexts"


def is_pause_wanted(home: Path) -> bool:
    """Whether the file is there by which a person pauses everything; nobody but a person deletes it (S2R.1, S2R.4)."""
    return (contexts_of(home) / "pause_signal").exists()


def parent_of(status: TaskStatus) -> Parent | None:
    """Where the folder of a task of this status lies; None where it has none."""
    match status:
        case "queued":
            return None
        case "running" | "paused":
            return status
        case "completed" | "failed" | "stopped":
            return "completed"


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The files of one task. Methods raise OSError where they cannot be written."""

    path: Path

    def append(self, name: str, lines: Iterable[Frozen]) -> None:
        """Add lines to a file."""
        if text := "".join(map(_line, lines)):
            with self._open(name, os.O_APPEND) as file:
                file.write(text)

    def write(self, name: str, lines: Iterable[Frozen]) -> None:
        """Put a file in place, whole, with these lines; nobody sees half of it."""
        part = f"{name}.part"
        with self._open(part, os.O_TRUNC) as file:
            file.writelines(map(_line, lines))
        (self.path / part).replace(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def system(self) -> str:
        """The system prompt that the files were begun with; empty where it cannot be read."""
        try:
            with (self.path / MESSAGES).open(encoding="utf-8") as file:
                first = MessageLine.model_validate_json(file.readline())
        except (OSError, ValueError, ValidationError):
            return ""
        return first.content if first.role == "system" else ""

    def _open(self, name: str, how: int):  # a text file; its type has no short name
        path = self.path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "w", encoding="utf-8")


def _line(value: Frozen) -> str:
    return value.model_dump_json(exclude_none=True) + "\n"


def task_folder(home: Path, parent: Parent, uuid: str) -> TaskFolder:
    """The folder of a task below this folder, moved there from wherever it lies, or made. Raises OSError."""
    here = contexts_of(home) / parent / uuid
    for each in (here.parent.parent, here.parent):  # `parents` would make these readable for others
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in PARENTS:
        other = contexts_of(home) / each / uuid
        if each == parent or not other.is_dir():
            continue
        if here.is_dir():
            shutil.rmtree(other)
        else:
            other.rename(here)
    here.mkdir(mode=0o700, exist_ok=True)
    return TaskFolder(here)


def is_below(home: Path, parent: Parent, uuid: str) -> bool:
    """Whether the folder of a task lies below this folder."""
    return (contexts_of(home) / parent / uuid).is_dir()


def remove_task(home: Path, uuid: str) -> None:
    """Delete the folder of a task, wherever it lies. Raises OSError."""
    for each in PARENTS:
        path = contexts_of(home) / each / uuid
        if path.is_dir():
            shutil.rmtree(path)
