"""`contexts/tasks.db`: a row for each task, for whoever asks how many there are and what they took (S2C.6, S2C.23)."""

from __future__ import annotations

from pathlib import Path

from daiku.core.work.tasklines import TaskStatus
from daiku.domain.errors import DaikuError
from daiku.store.database import Values, marks
from daiku.store.sqlite import connect
from daiku.work.contexts.tree import contexts_of

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
"""Maximum number of attempts to write a row (S2C.22)."""
PROCESS_COLUMNS = ("process_id", "hostname", "context_length")
"""Columns that are known only while the task is processed: a row written later keeps them."""


class TaskTable:
    """The rows of one home. Raises UsageError if the file cannot be used; a missing table is created."""

    def __init__(self, home: Path) -> None:
        self._db = connect(contexts_of(home) / "tasks.db", SCHEMA)

    def upsert(self, row: dict[str, str | int | None]) -> None:
        """Write a row by its columns, or update it. Raises DaikuError."""
        sets = [
            f"{name} = CASE WHEN excluded.process_id = 0 THEN {name} ELSE excluded.{name} END"
            if name in PROCESS_COLUMNS
            else f"{name} = excluded.{name}"
            for name in row
        ]
        sql = f"INSERT INTO tasks({', '.join(row)}) VALUES({marks(len(row))}) ON CONFLICT(uuid) DO UPDATE SET {', '.join(sets)}"
        values: Values = tuple(row.values())
        for left in reversed(range(TRIES)):
            try:
                return self._db.write(sql, values)
            except DaikuError:
                if not left:
                    raise
        return None

    def statuses(self) -> dict[str, TaskStatus]:
        """Return the status of every task by its UUID."""
        return dict(self._db.query("SELECT uuid, status FROM tasks"))

    def ended_before(self, time: str) -> tuple[str, ...]:
        """Return the UUIDs of the tasks that ended before `time`."""
        return tuple(
            uuid for (uuid,) in self._db.query("SELECT uuid FROM tasks WHERE completed_at < ?", (time,))
        )

    def remove(self, uuid: str) -> None:
        """Delete the row of a task. Raises DaikuError."""
        self._db.write("DELETE FROM tasks WHERE uuid = ?", (uuid,))

    def close(self) -> None:
        self._db.close()
