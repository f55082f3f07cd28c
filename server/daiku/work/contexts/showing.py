"""Shows one item as files: all of them anew from the journal, or what is new while its run is under way."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from daiku.core.state.condense import WORK_SHARE
from daiku.core.work.tasklines import (
    MessageLine,
    PausedTask,
    PlanLine,
    SummaryLine,
    TaskInfo,
    TaskRequest,
    TaskSettings,
    TaskStatus,
    ToolLine,
    current_line,
    current_lines,
    system_lines,
    task_key,
    task_status,
)
from daiku.core.work.taskview import TaskView, add_chunk
from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.items.item import OVER
from daiku.work.contexts.tasktable import TaskRow, TaskTable
from daiku.work.contexts.tree import CURRENT, MESSAGES, METADATA, REQUEST, STATE, SUMMARIES, TOOLS, TaskFolder
from daiku.work.record import ItemRecord


@dataclass(frozen=True, slots=True)
class Worked:
    """What works a task: the process, the tokens that its model takes, and its system prompt. Nothing of it is in the
    journal: files that are made again later keep what they said of it."""

    process_id: int = 0
    context_length: int = 0
    system: str = ""


def status_of(record: ItemRecord) -> TaskStatus:
    """How the item's task stands."""
    return task_status(record.shown.state, begun=bool(record.shown.session_id))


@dataclass(slots=True)
class TaskShow:
    """The files of one item in `folder`, up to the chunks that it was shown."""

    record: ItemRecord
    folder: TaskFolder
    table: TaskTable
    worked: Worked
    checklist: str = ""
    """The id of the comment that shows the plan."""
    view: TaskView = field(default_factory=TaskView)

    def whole(self, chunks: Iterable[Chunk]) -> None:
        """Write every file anew. Raises OSError, DaikuError."""
        messages: list[MessageLine] = []
        summaries: list[SummaryLine] = []
        tools: list[ToolLine] = []
        plans: list[PlanLine] = []
        self.view = TaskView(last=1 if self.worked.system else 0)
        for chunk in chunks:
            self.view, added = add_chunk(self.view, chunk, self._uuid, self.record.item)
            messages += added.messages
            summaries += added.summaries
            tools += added.tools
            plans += added.plans
        self._write_info()
        folder, created = self.folder, self.record.shown.created_at
        folder.write(MESSAGES, (*system_lines(self.worked.system, created), *messages))
        folder.write(SUMMARIES, summaries)
        folder.write(TOOLS, tools)
        if plans:
            folder.write(self._planning, plans)
        self._write_current()
        self._write_standing()

    def more(self, chunks: Iterable[Chunk]) -> None:
        """Add what is new. Raises OSError, DaikuError."""
        before = self.view.state.conversation.messages
        for chunk in chunks:
            self.view, added = add_chunk(self.view, chunk, self._uuid, self.record.item)
            self.folder.append(MESSAGES, added.messages)
            self.folder.append(SUMMARIES, added.summaries)
            self.folder.append(TOOLS, added.tools)
            self.folder.append(self._planning, added.plans)
        now = self.view.state.conversation.messages
        kept = len(before)
        if now is not before and len(now) >= kept and all(a is b for a, b in zip(before, now, strict=False)):
            self.folder.append(CURRENT, map(current_line, now[kept:]))
        elif now is not before:
            self._write_current()
        self._write_standing()

    @property
    def _uuid(self) -> str:
        return self.record.facts.uuid

    @property
    def _planning(self) -> str:
        return f"planning/{self._uuid}.jsonl"

    def _write_current(self) -> None:
        self.folder.write(CURRENT, current_lines(self.worked.system, self.view.state.conversation.messages))

    def _write_standing(self) -> None:
        """What changes with every step: the row, what the model is asked at this moment, where it was paused."""
        status = status_of(self.record)
        if status == "running" and self.worked.process_id and self.view.asks_model:
            messages = current_lines(self.worked.system, self.view.state.conversation.messages)
            self.folder.write(REQUEST, [TaskRequest(model=self.view.counts.model, messages=messages)])
        else:
            self.folder.remove(REQUEST)
        if status == "paused":
            self.folder.write(STATE, [self._paused()])
        else:
            self.folder.remove(STATE)
        self.table.put(self._row(status))

    def _write_info(self) -> None:
        if self.folder.has(METADATA):
            return
        provider, _, model = self.view.counts.model.partition("/")
        settings = TaskSettings(
            llm_provider=provider,
            model=model,
            context_length=self.worked.context_length,
            compression_threshold=WORK_SHARE,
        )
        info = TaskInfo(
            uuid=self._uuid,
            task_key=task_key(self.record.key),
            created_at=self.record.shown.created_at,
            process_id=self.worked.process_id,
            hostname=socket.gethostname(),
            config=settings,
            user=self._user,
        )
        self.folder.write(METADATA, [info])

    @property
    def _user(self) -> str:
        return self.record.claim.author if self.record.claim is not None else ""

    def _paused(self) -> PausedTask:
        counts = self.view.counts
        return PausedTask(
            task_key=task_key(self.record.key),
            uuid=self._uuid,
            user=self._user,
            paused_at=self.record.shown.updated_at,
            current_phase="planning" if self.view.plan is None else "execution",
            executed_action_count=counts.tool_calls,
            plan_revision_count=counts.revisions,
            checklist_comment_id=self.checklist,
            resume_count=max(0, self.record.shown.attempts - 1),
        )

    def _row(self, status: TaskStatus) -> TaskRow:
        shown, counts = self.record.shown, self.view.counts
        provider, _, model = counts.model.partition("/")
        return TaskRow(
            uuid=self._uuid,
            **task_key(self.record.key).model_dump(),
            status=status,
            created_at=shown.created_at,
            started_at=counts.started_at or None,
            completed_at=shown.updated_at if shown.state in OVER else None,
            process_id=self.worked.process_id,
            hostname=socket.gethostname(),
            llm_provider=provider,
            model=model,
            context_length=self.worked.context_length,
            llm_call_count=counts.llm_calls,
            tool_call_count=counts.tool_calls,
            total_tokens=counts.tokens,
            compression_count=counts.compressions,
            error_message=str(shown.error) or None,
            user=self._user,
        )


def own_process(context_length: int, system: str) -> Worked:
    """This process as what works a task."""
    return Worked(os.getpid(), context_length, system)
