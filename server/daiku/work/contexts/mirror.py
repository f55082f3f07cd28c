"""The files and the row of one task, written from the chunks of its session."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from daiku.core.state.condense import WORK_SHARE
from daiku.core.work.tasklines import (
    TaskStatus,
    TaskView,
    build_task_key,
    current_lines,
    message_line,
    task_status,
)
from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.items.item import OVER
from daiku.work.contexts.tasktable import TaskTable
from daiku.work.contexts.tree import write_lines
from daiku.work.record import ItemRecord


class Process(NamedTuple):
    """What processes a task; no journal holds it. `context_length`: the model's context window in tokens."""

    id: int = 0
    context_length: int = 0
    system: str = ""


@dataclass(slots=True)
class TaskMirror:
    """The files of one item in `folder`. `checklist` is the id of the comment that shows its plan."""

    record: ItemRecord
    folder: Path
    table: TaskTable
    process: Process
    checklist: str = ""
    view: TaskView = field(init=False)
    seq: int | None = field(default=None, init=False)
    """Number of the last chunk; None before the first write."""

    def __post_init__(self) -> None:
        last = 1 if self.process.system else 0
        self.view = TaskView(self.record.facts.uuid, self.record.item, last)

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Write what the chunks add; the first time, write every file whole. Raises OSError, DaikuError."""
        is_first = self.seq is None
        if not chunks and not is_first:
            return
        self.seq = chunks[-1].seq if chunks else 0
        system, created = self.process.system, self.record.shown.created_at
        before = self.view.state.conversation.messages
        lines = [line for chunk in chunks for line in self.view.add(chunk)]
        if is_first and system:
            lines.insert(0, message_line(1, {"role": "system", "content": system}, created))
        for name in ("messages.jsonl", "summaries.jsonl", "tools.jsonl", "planning"):
            added = [line.value for line in lines if line.file == name]
            path = self.folder / name
            path = path / f"{self.view.uuid}.jsonl" if name == "planning" else path
            if added or (is_first and name != "planning"):
                write_lines(path, added, append=not is_first)
        messages = current_lines(system, self.view.state.conversation.messages)
        if is_first or self.view.state.conversation.messages is not before:
            write_lines(self.folder / "current.jsonl", messages)
        if not (self.folder / "metadata.json").exists():
            write_lines(self.folder / "metadata.json", [self._metadata()])
        status = task_status(self.record.shown.state, begun=True)
        asked = status == "running" and self.process.id and self.view.asks_model
        request: JsonObject = {"model": self.view.model, "messages": list(messages)}
        self._write_or_delete("request.json", request if asked else None)
        self._write_or_delete("task_state.json", self._state() if status == "paused" else None)
        self.table.upsert(self._row(status))

    def _write_or_delete(self, name: str, value: JsonObject | None) -> None:
        """Write a file of one line, or delete it."""
        if value is None:
            (self.folder / name).unlink(missing_ok=True)
        else:
            write_lines(self.folder / name, [value])

    @property
    def _user(self) -> str:
        return self.record.claim.author if self.record.claim is not None else ""

    def _metadata(self) -> JsonObject:
        provider, _, model = self.view.model.partition("/")
        return {
            "uuid": self.view.uuid,
            "task_key": {**build_task_key(self.record.key)},
            "created_at": self.record.shown.created_at,
            "process_id": self.process.id,
            "hostname": socket.gethostname(),
            "config": {
                "llm_provider": provider,
                "model": model,
                "context_length": self.process.context_length,
                "compression_threshold": WORK_SHARE,
            },
            "user": self._user,
        }

    def _state(self) -> JsonObject:
        return {
            "task_key": {**build_task_key(self.record.key)},
            "uuid": self.view.uuid,
            "user": self._user,
            "paused_at": self.record.shown.updated_at,
            "status": "paused",
            "current_phase": "planning" if self.view.plan is None else "execution",
            "executed_action_count": self.view.tool_calls,
            "plan_revision_count": self.view.revisions,
            "checklist_comment_id": self.checklist,
            "resume_count": max(0, self.record.shown.attempts - 1),
        }

    def _row(self, status: TaskStatus) -> dict[str, str | int | None]:
        shown, view = self.record.shown, self.view
        provider, _, model = view.model.partition("/")
        return {
            "uuid": view.uuid,
            **build_task_key(self.record.key),
            "status": status,
            "created_at": shown.created_at,
            "started_at": view.started_at or None,
            "completed_at": shown.updated_at if shown.state in OVER else None,
            "process_id": self.process.id,
            "hostname": socket.gethostname(),
            "llm_provider": provider,
            "model": model,
            "context_length": self.process.context_length,
            "llm_call_count": view.llm_calls,
            "tool_call_count": view.tool_calls,
            "total_tokens": view.tokens,
            "compression_count": view.compressions,
            "error_message": str(shown.error) or None,
            "user": self._user,
        }
