"""The `contexts/` tree: a folder for each task by its status, its files, and the file that pauses everything."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from daiku.core.work.tasklines import TaskStatus
from daiku.domain.base import JsonObject

Parent = Literal["running", "paused", "completed"]
"""A folder below `contexts/` that contains folders of tasks."""


def contexts_of(home: Path) -> Path:
    """Return the folder of all context files."""
    return home / "contexts"


def is_pause_wanted(home: Path) -> bool:
    """Return True if the file that pauses everything exists; only the user creates and deletes it (S2R.1, S2R.4)."""
    return (contexts_of(home) / "pause_signal").exists()


def parent_of(status: TaskStatus) -> Parent | None:
    """Return where the folder of a task of this status lies; None if it has none."""
    match status:
        case "queued":
            return None
        case "running" | "paused":
            return status
        case "completed" | "failed" | "stopped":
            return "completed"


def place_task(home: Path, parent: Parent, uuid: str) -> Path:
    """Move the folder of a task below `parent`, or create it there, and return it. Raises OSError."""
    folder = contexts_of(home) / parent / uuid
    for each in (folder.parent.parent, folder.parent):  # `parents` would make these readable for others
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in _folders_of(home, uuid):
        if not folder.is_dir():
            other.rename(folder)
        elif other != folder:
            shutil.rmtree(other)
    for each in (folder, folder / "planning"):
        each.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_task(home: Path, uuid: str) -> None:
    """Delete the folder of a task. Raises OSError."""
    for folder in _folders_of(home, uuid):
        shutil.rmtree(folder)


def write_lines(path: Path, lines: Iterable[JsonObject], *, append: bool = False) -> None:
    """Write a file whole, so that nobody reads half of it, or append to it. Raises OSError."""
    target = path if append else path.with_name(f"{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | (os.O_APPEND if append else os.O_TRUNC)
    with os.fdopen(os.open(target, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{json.dumps(each, ensure_ascii=False, separators=(',', ':'))}\n" for each in lines)
    if not append:
        target.replace(path)


def read_system(path: Path) -> str:
    """Return the system prompt at the beginning of `messages.jsonl`; empty if it cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
        return first["content"] if first["role"] == "system" else ""
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def _folders_of(home: Path, uuid: str) -> list[Path]:
    return [each for each in contexts_of(home).glob(f"*/{uuid}") if each.is_dir()]
