"""The files and the table row of one task, written from the chunks of its session."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.items.item import OVER
from daiku.items.record import ItemRecord
from daiku.items.rules.tasklines import (
    FileName,
    TaskStatus,
    TaskView,
    build_current_lines,
    build_message_line,
    build_task_key,
    to_task_status,
)
from daiku.run.live import ModelPrompt
from daiku.run.rules.state.condense import WORK_SHARE
from daiku.store.database import build_placeholders
from daiku.store.sqlite import connect

SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks(
  uuid TEXT PRIMARY KEY, task_source TEXT NOT NULL, owner TEXT NOT NULL, repo TEXT NOT NULL,
  task_type TEXT NOT NULL, task_id TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL,
  started_at TEXT, completed_at TEXT, process_id INTEGER, hostname TEXT, llm_provider TEXT, model TEXT,
  context_length INTEGER, llm_call_count INTEGER NOT NULL DEFAULT 0,
  tool_call_count INTEGER NOT NULL DEFAULT 0, total_tokens INTEGER NOT NULL DEFAULT 0,
  compression_count INTEGER NOT NULL DEFAULT 0, error_message TEXT, user TEXT);
CREATE VIEW IF NOT EXISTS statistics AS
  SELECT status, COUNT(*) AS tasks,
    AVG((julianday(completed_at) - julianday(started_at)) * 86400) AS mean_seconds,
    SUM(total_tokens) AS total_tokens, SUM(llm_call_count) AS llm_call_count,
    SUM(tool_call_count) AS tool_call_count
  FROM tasks GROUP BY status;
"""
TRIES = 3
"""Maximum number of attempts to write a row."""
PROCESS_COLUMNS = ("process_id", "hostname", "context_length")
"""Columns that are known only while the task is processed; a row written later keeps them."""
Row = dict[str, str | int | None]


class TaskTable:
    """The rows of `contexts/tasks.db`. Raises UsageError if the file cannot be used."""

    def __init__(self, contexts: Path) -> None:
        self._db = connect(contexts / "tasks.db", SCHEMA)

    def upsert(self, row: Row) -> None:
        """Insert or update a row by its columns. Raises DaikuError."""
        kept_columns = () if row["process_id"] else PROCESS_COLUMNS
        sets = ", ".join(f"{name} = excluded.{name}" for name in row if name not in kept_columns)
        places = f"tasks({', '.join(row)}) VALUES({build_placeholders(len(row))})"
        for tries_left in reversed(range(TRIES)):
            try:
                self._db.write(
                    f"INSERT INTO {places} ON CONFLICT(uuid) DO UPDATE SET {sets}", tuple(row.values())
                )
                return
            except DaikuError:
                if not tries_left:
                    raise

    def read_statuses(self) -> dict[str, TaskStatus]:
        """Return the status of every task by its UUID."""
        return dict(self._db.query("SELECT uuid, status FROM tasks"))

    def find_ended(self, time: str) -> tuple[str, ...]:
        """Return the UUIDs of the tasks that ended before `time`."""
        return tuple(
            uuid for (uuid,) in self._db.query("SELECT uuid FROM tasks WHERE completed_at < ?", (time,))
        )

    def remove(self, uuid: str) -> None:
        """Delete the row of a task. Raises DaikuError."""
        self._db.write("DELETE FROM tasks WHERE uuid = ?", (uuid,))

    def close(self) -> None:
        self._db.close()


@dataclass(slots=True)
class TaskMirror:
    """Writer of one item's files in `folder`.

    `process_id`: 0 if it is not being processed. `checklist`: id of the comment that shows its plan.
    """

    record: ItemRecord
    folder: Path
    table: TaskTable
    prompt: ModelPrompt
    process_id: int = 0
    checklist: str = ""
    view: TaskView = field(init=False)
    seq: int | None = field(default=None, init=False)
    """Number of the last chunk; None before the first write."""

    def __post_init__(self) -> None:
        last = 1 if self.prompt.system else 0
        self.view = TaskView(self.record.facts.uuid, self.record.item, last)

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Write what the chunks add; the first time, write every file completely. Raises OSError, DaikuError."""
        is_first = self.seq is None
        if not chunks and not is_first:
            return
        self.seq = chunks[-1].seq if chunks else 0
        view, system = self.view, self.prompt.system
        before = view.state.conversation.messages
        lines = [line for chunk in chunks for line in view.add(chunk)]
        if is_first and system:
            first: JsonObject = {"role": "system", "content": system}
            lines.insert(0, build_message_line(1, first, self.record.shown.created_at))
        for name in get_args(FileName):
            added = [line.value for line in lines if line.file == name]
            path = self.folder / (f"planning/{view.uuid}.jsonl" if name == "planning" else name)
            if added or (is_first and name != "planning"):
                write_lines(path, added, append=not is_first)
        messages = build_current_lines(system, view.state.conversation.messages)
        if is_first or view.state.conversation.messages is not before:
            write_lines(self.folder / "current.jsonl", messages)
        row = self._build_row()
        if not (self.folder / "metadata.json").exists():
            write_lines(self.folder / "metadata.json", [self._build_metadata(row)])
        is_asked = row["status"] == "running" and self.process_id and view.asks_model
        request: JsonObject = {"model": view.model, "messages": list(messages)}
        self._write_or_delete("request.json", request if is_asked else None)
        self._write_or_delete(
            "task_state.json", self._build_state(row) if row["status"] == "paused" else None
        )
        self.table.upsert(row)

    def _write_or_delete(self, name: str, value: JsonObject | None) -> None:
        """Write a file of one line, or delete it if `value` is None."""
        if value is None:
            (self.folder / name).unlink(missing_ok=True)
        else:
            write_lines(self.folder / name, [value])

    def _build_row(self) -> Row:
        record, item, view = self.record, self.record.shown, self.view
        provider, _, model = view.model.partition("/")
        return {
            "uuid": view.uuid,
            **build_task_key(record.key),
            "status": get_task_status(record),
            "created_at": item.created_at,
            "started_at": view.started_at or None,
            "completed_at": item.updated_at if item.state in OVER else None,
            "process_id": self.process_id,
            "hostname": socket.gethostname(),
            "llm_provider": provider,
            "model": model,
            "context_length": self.prompt.context,
            "llm_call_count": view.llm_calls,
            "tool_call_count": view.tool_calls,
            "total_tokens": view.tokens,
            "compression_count": view.compressions,
            "error_message": str(item.error) or None,
            "user": record.claim.author if record.claim is not None else "",
        }

    def _build_metadata(self, row: Row) -> JsonObject:
        config = {name: row[name] for name in ("llm_provider", "model", "context_length")}
        return {
            **{name: row[name] for name in ("uuid", "created_at", "process_id", "hostname", "user")},
            "task_key": {**build_task_key(self.record.key)},
            "config": {**config, "compression_threshold": WORK_SHARE},
        }

    def _build_state(self, row: Row) -> JsonObject:
        item = self.record.shown
        return {
            **{name: row[name] for name in ("uuid", "user", "status")},
            "task_key": {**build_task_key(self.record.key)},
            "paused_at": item.updated_at,
            "current_phase": "planning" if self.view.plan is None else "execution",
            "executed_action_count": self.view.tool_calls,
            "plan_revision_count": self.view.revisions,
            "checklist_comment_id": self.checklist,
            "resume_count": max(0, item.attempts - 1),
        }


def get_task_status(record: ItemRecord) -> TaskStatus:
    """Return the status of an item's task."""
    return to_task_status(record.shown.state, was_started=bool(record.shown.session_id))


def write_lines(path: Path, lines: Iterable[JsonObject], *, append: bool = False) -> None:
    """Write a file atomically, or append to it. Raises OSError."""
    target = path if append else path.with_name(f"{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | (os.O_APPEND if append else os.O_TRUNC)
    with os.fdopen(os.open(target, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
    if not append:
        target.replace(path)
