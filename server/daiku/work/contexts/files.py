"""The context files of one home: written while an item is processed, brought up to date, deleted after 30 days."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from daiku.core.work.tasklines import task_status
from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.items.item import OVER
from daiku.runs.live import ModelTold
from daiku.work.contexts.mirror import Process, TaskMirror
from daiku.work.contexts.tasktable import TaskTable
from daiku.work.contexts.tree import (
    contexts_of,
    is_pause_wanted,
    parent_of,
    place_task,
    read_system,
    remove_task,
)
from daiku.work.intents import IntentStore
from daiku.work.items import ItemStore
from daiku.work.record import HALTS, ItemRecord

logger = logging.getLogger(__name__)
KEPT_DAYS = 30
"""Days for which the files of an ended item are kept, and for which a paused item is resumed automatically."""
Result = TypeVar("Result")
FOLLOW_SECONDS = 0.2
"""Poll interval in seconds of the journal while an item is processed."""


class Chunks(Protocol):
    """A reader of the chunks of sessions (the journal)."""

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]: ...


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The context files below `home`, written from `items`, `intents`, and `journal` and never read as truth. They may
    be deleted at any time: a worker writes them again."""

    home: Path
    items: ItemStore
    intents: IntentStore
    journal: Chunks

    async def follow(
        self, item: str, working: asyncio.Task[Result], told: Callable[[], ModelTold | None]
    ) -> Result:
        """Write the item's files until `working` ends, and return its result. `told`: None as long as no model was
        asked. A write error ends only the writing; a worker writes the files later."""
        mirror: TaskMirror | None = None
        try:
            with closing(TaskTable(self.home)) as table:
                ended = False
                while not ended:
                    await asyncio.wait({working}, timeout=FOLLOW_SECONDS)
                    ended = working.done()
                    if mirror is None:
                        mirror = self._begin(item, table, told())
                    if mirror is not None:
                        await asyncio.to_thread(self._add_new, mirror)
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files of %s were not kept up: %s", item, wrong)
        except asyncio.CancelledError:
            working.cancel()
            await asyncio.wait({working})
            raise
        return await working

    def _begin(self, item: str, table: TaskTable, known: ModelTold | None) -> TaskMirror | None:
        """Return the mirror of an item whose model was asked; None before that."""
        record = self.items.record(item) if known is not None else None
        if known is None or record is None or not record.shown.session_id or not record.facts.uuid:
            return None
        folder = place_task(self.home, "running", record.facts.uuid)
        return TaskMirror(record, folder, table, Process(os.getpid(), known.context, known.system))

    def _add_new(self, mirror: TaskMirror) -> None:
        session = mirror.record.shown.session_id
        mirror.add(self.journal.chunks(session, mirror.seq or 0) if session else [])

    def show(self, record: ItemRecord) -> None:
        """Write the files of an item that is not processed now. A write error is logged; it is tried again later."""
        try:
            with closing(TaskTable(self.home)) as table:
                self._show(record, table)
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files of %s were not made: %s", record.item, wrong)

    def refresh(self) -> None:
        """Queue again what the pause file held, and bring the files up to date, before a worker looks for items."""
        if not is_pause_wanted(self.home):
            self._resume_halted()
        try:
            self.catch_up()
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files were not brought up to date: %s", wrong)

    def _resume_halted(self) -> None:
        """Queue the items again that the pause file held, except those paused for too long (S2R.5, S2R.10)."""
        oldest = oldest_kept()
        for record in self.items.records("paused"):
            if record.wanted not in HALTS:
                continue
            if record.shown.updated_at < oldest:
                logger.info("%s is paused for more than %d days: it is left so", record.item, KEPT_DAYS)
                continue
            self.items.requeue(record.item)

    def catch_up(self) -> None:
        """Write missing and outdated files of items that nobody processes now, and delete old ones. Raises OSError,
        DaikuError."""
        oldest = oldest_kept()
        with closing(TaskTable(self.home)) as table:
            for uuid in table.ended_before(oldest):
                remove_task(self.home, uuid)
                table.remove(uuid)
            statuses = table.statuses()
            for record in self.items.since(oldest, "queued", "paused", "waiting", *OVER):
                status = task_status(record.shown.state, begun=bool(record.shown.session_id))
                folder = contexts_of(self.home) / (parent_of(status) or "") / record.facts.uuid
                is_current = statuses.get(record.facts.uuid) == status and folder.is_dir()
                if record.shown.updated_at >= oldest and not is_current:
                    self._show(record, table)

    def _show(self, record: ItemRecord, table: TaskTable) -> None:
        parent = parent_of(task_status(record.shown.state, begun=bool(record.shown.session_id)))
        if parent is None or not record.facts.uuid:
            return
        folder = place_task(self.home, parent, record.facts.uuid)
        process = Process(system=read_system(folder / "messages.jsonl"))
        checklist = self.intents.find(record.item, "progress")
        mirror = TaskMirror(
            record, folder, table, process, checklist.reference if checklist is not None else ""
        )
        self._add_new(mirror)


def oldest_kept() -> str:
    """Return the time before which context files are deleted."""
    time = datetime.now(UTC) - timedelta(days=KEPT_DAYS)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
