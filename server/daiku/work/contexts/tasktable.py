"""`contexts/tasks.db`: a row for each task, for whoever asks how many there are and what they took (S2C.6, S2C.23)."""

from __future__ import annotations

from pathlib import Path

from daiku.core.work.tasklines import TaskStatus
from daiku.domain.base import Frozen
from daiku.domain.errors import DaikuError
from daiku.store.sqlite import connect
from daiku.work.contexts.tree import contexts_of

TRIES = 3
"""How often a row is written before it is given up (S2C.22)."""
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


class TaskRow(Frozen):
    """A task as its row says; the fields are the columns, in their order."""

    uuid: str
    task_source: str
    owner: str
    repo: str
    task_type: str
    task_id: str
    status: TaskStatus
    created_at: str
    started_at: str | None
    completed_at: str | None
    process_id: int
    hostname: str
    llm_provider: str
    model: str
    context_length: int
    llm_call_count: int
    tool_call_count: int
    total_tokens: int
    compression_count: int
    error_message: str | None
    user: str


_COLUMNS = tuple(TaskRow.model_fields)
# What worked a task, and with which model, is known only while it is worked: a row made later keeps it.
_KEPT = ("process_id", "hostname", "llm_provider", "model", "context_length")
_SETS = ", ".join(
    f"{name} = CASE WHEN excluded.process_id = 0 THEN {name} ELSE excluded.{name} END"
    if name in _KEPT
    else f"{name} = excluded.{name}"
    for name in _COLUMNS[1:]
)
_PUT = (
    f"INSERT INTO tasks({', '.join(_COLUMNS)}) VALUES({', '.join('?' * len(_COLUMNS))})"  # constants
    f" ON CONFLICT(uuid) DO UPDATE SET {_SETS}"
)


class TaskTable:
    """The rows of one home. Raises UsageError where the file cannot be used; the table is made where it is missing."""

    def __init__(self, home: Path) -> None:
        self._db = connect(contexts_of(home) / "tasks.db", SCHEMA)

    def put(self, row: TaskRow) -> None:
        """Write a row, over the one that it has. Raises DaikuError."""
        values = tuple(row.model_dump().values())
        for left in reversed(range(TRIES)):
            try:
                self._db.write(_PUT, values)
            except DaikuError:
                if not left:
                    raise
            else:
                return

    def statuses(self) -> tuple[tuple[str, TaskStatus], ...]:
        """Every task and how its row says it stands."""
        return tuple((row[0], row[1]) for row in self._db.query("SELECT uuid, status FROM tasks"))

    def over_before(self, time: str) -> tuple[str, ...]:
        """The tasks that were over before `time`."""
        return tuple(
            row[0] for row in self._db.query("SELECT uuid FROM tasks WHERE completed_at < ?", (time,))
        )

    def remove(self, uuid: str) -> None:
        self._db.write("DELETE FROM tasks WHERE uuid = ?", (uuid,))

    def close(self) -> None:
        self._db.close()
