"""The `contexts/` folder of a home: a readable copy of each work item's journal, never used as input."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.items.item import OVER
from daiku.items.contexts.mirror import TaskMirror, TaskTable, get_task_status
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.record import HALT_ORDERS, ItemRecord
from daiku.items.retrying import format_time_after
from daiku.items.rules.tasklines import TaskStatus
from daiku.run.live import ModelPrompt

logger = logging.getLogger(__name__)
KEPT_DAYS = 30
"""Days for which the files of an ended item are kept, and for which a paused item is resumed automatically."""
FOLLOW_SECONDS = 0.2
"""Poll interval in seconds of the journal while an item is processed."""
Parent = Literal["running", "paused", "completed"]
"""A folder below `contexts/` that contains task folders."""
Result = TypeVar("Result")


class Chunks(Protocol):
    """A reader of the chunks of sessions (the journal)."""

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]: ...


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The context files below `home`, written from `items`, `intents`, and `journal`.

    They may be deleted at any time: a worker writes them again.
    """

    home: Path
    items: ItemStore
    intents: IntentStore
    journal: Chunks

    async def mirror_until_done(
        self, item: str, working: asyncio.Task[Result], get_prompt: Callable[[], ModelPrompt | None]
    ) -> Result:
        """Write the item's files until `working` ends, and return its result.

        `get_prompt` returns None until a model was called. A write error ends only the writing; a worker
        writes the files later.
        """
        mirror: TaskMirror | None = None
        try:
            with closing(self._open_table()) as table:
                ended = False
                while not ended:
                    await asyncio.wait({working}, timeout=FOLLOW_SECONDS)
                    ended = working.done()
                    if mirror is None and (prompt := get_prompt()) is not None:
                        mirror = self._begin(item, table, prompt)
                    if mirror is not None:
                        await asyncio.to_thread(self._add_new_chunks, mirror)
        except (OSError, DaikuError) as error:
            logger.warning("the context files of %s were not kept up: %s", item, error)
        except asyncio.CancelledError:
            working.cancel()
            await asyncio.wait({working})
            raise
        return await working

    def _open_table(self) -> TaskTable:
        return TaskTable(get_contexts_folder(self.home))

    def _begin(self, item: str, table: TaskTable, prompt: ModelPrompt) -> TaskMirror | None:
        record = self.items.record(item)
        if record is None or not record.shown.session_id or not record.facts.uuid:
            return None
        return TaskMirror(record, self._place_task("running", record.facts.uuid), table, prompt, os.getpid())

    def _add_new_chunks(self, mirror: TaskMirror) -> None:
        session = mirror.record.shown.session_id
        mirror.add(self.journal.chunks(session, mirror.seq or 0) if session else [])

    def show(self, record: ItemRecord) -> None:
        """Write the files of an item that is not being processed. A write error is logged and retried later."""
        try:
            with closing(self._open_table()) as table:
                self._write(record, table)
        except (OSError, DaikuError) as error:
            logger.warning("the context files of %s were not made: %s", record.item, error)

    def refresh(self) -> None:
        """Queue items again that the pause file held, and update the files, before a worker polls for items."""
        if not is_pause_wanted(self.home):
            self._resume_halted()
        try:
            self.catch_up()
        except (OSError, DaikuError) as error:
            logger.warning("the context files were not brought up to date: %s", error)

    def _resume_halted(self) -> None:
        """Queue the items again that the pause file held, except those paused for too long."""
        oldest = get_oldest_kept()
        for record in self.items.records("paused"):
            if record.wanted not in HALT_ORDERS:
                continue
            if record.shown.updated_at < oldest:
                logger.info("%s is paused for more than %d days: it is left so", record.item, KEPT_DAYS)
                continue
            self.items.requeue(record.item)

    def catch_up(self) -> None:
        """Write missing and outdated files of items that are not being processed, and delete old ones.

        Raises OSError, DaikuError.
        """
        oldest = get_oldest_kept()
        with closing(self._open_table()) as table:
            for uuid in table.find_ended(oldest):
                for folder in self._find_folders(uuid):
                    shutil.rmtree(folder)
                table.remove(uuid)
            statuses = table.read_statuses()
            for record in self.items.since(oldest, "queued", "paused", "waiting", *OVER):
                uuid, status = record.facts.uuid, get_task_status(record)
                folder = get_contexts_folder(self.home) / (get_parent(status) or "") / uuid
                is_current = statuses.get(uuid) == status and folder.is_dir()
                if record.shown.updated_at >= oldest and not is_current:
                    self._write(record, table)

    def _write(self, record: ItemRecord, table: TaskTable) -> None:
        parent = get_parent(get_task_status(record))
        if parent is None or not record.facts.uuid:
            return
        folder = self._place_task(parent, record.facts.uuid)
        prompt = ModelPrompt(read_system(folder / "messages.jsonl"), 0)
        checklist = self.intents.find(record.item, "progress")
        comment_id = checklist.reference if checklist is not None else ""
        self._add_new_chunks(TaskMirror(record, folder, table, prompt, checklist=comment_id))

    def _place_task(self, parent: Parent, uuid: str) -> Path:
        """Move a task's folder below `parent`, or create it there, and return it. Raises OSError."""
        folder = get_contexts_folder(self.home) / parent / uuid
        for above in (folder.parent.parent, folder.parent):  # `parents` would make these readable for others
            above.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._find_folders(uuid):
            if not folder.is_dir():
                other.rename(folder)
            elif other != folder:
                shutil.rmtree(other)
        for path in (folder, folder / "planning"):
            path.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _find_folders(self, uuid: str) -> list[Path]:
        return [path for path in get_contexts_folder(self.home).glob(f"*/{uuid}") if path.is_dir()]


def get_contexts_folder(home: Path) -> Path:
    """Return the folder of all context files."""
    return home / "contexts"


def is_pause_wanted(home: Path) -> bool:
    """Return True if the file that pauses everything exists. Only the user creates and deletes it."""
    return (get_contexts_folder(home) / "pause_signal").exists()


def get_parent(status: TaskStatus) -> Parent | None:
    """Return the parent folder of a task with this status; None if it has no folder."""
    match status:
        case "queued":
            return None
        case "running" | "paused":
            return status
        case "completed" | "failed" | "stopped":
            return "completed"


def read_system(path: Path) -> str:
    """Return the system prompt at the beginning of `messages.jsonl`; empty if it cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
        return first["content"] if first["role"] == "system" else ""
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def get_oldest_kept() -> str:
    """Return the time before which context files are deleted."""
    return format_time_after(-timedelta(days=KEPT_DAYS).total_seconds())
