"""The context files of one home: kept up while an item is worked, brought up to date, cleared away after 30 days."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.items.item import OVER
from daiku.runs.live import ModelTold
from daiku.work.contexts.showing import TaskShow, Worked, own_process, status_of
from daiku.work.contexts.tasktable import TaskTable
from daiku.work.contexts.tree import is_below, is_pause_wanted, parent_of, remove_task, task_folder
from daiku.work.intents import IntentStore
from daiku.work.items import ItemStore
from daiku.work.record import HALTS, ItemRecord

logger = logging.getLogger(__name__)
KEPT_DAYS = 30
"""Days for which the files of an item that is over are kept, and for which a paused one is taken up again by itself."""
Result = TypeVar("Result")
FOLLOW_SECONDS = 0.2
"""Between two looks at the journal while an item is worked."""


class Chunks(Protocol):
    """Where the chunks of sessions are read (the journal)."""

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]: ...


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The context files below `home`, made from what `items`, `intents` and `journal` hold. They may be deleted at any
    time: a worker makes them again."""

    home: Path
    items: ItemStore
    intents: IntentStore
    journal: Chunks

    async def follow(
        self, item: str, working: asyncio.Task[Result], told: Callable[[], ModelTold | None]
    ) -> Result:
        """Show the item while `working` works it, to its end, and return what came of it. `told`: None as long as no
        model was asked. What cannot be written ends only this; a worker makes the files again."""
        shown: _Following | None = None
        try:
            ended = False
            while not ended:
                await asyncio.wait({working}, timeout=FOLLOW_SECONDS)
                ended = working.done()
                record = self.items.record(item) if shown is None else None
                begun = record is not None and record.shown.session_id and record.facts.uuid
                if record is not None and begun and (known := told()) is not None:
                    shown = _Following(self, record, own_process(known.context, known.system))
                if shown is not None:
                    await asyncio.to_thread(shown.look)
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files of %s were not kept up: %s", item, wrong)
        except asyncio.CancelledError:
            working.cancel()
            await asyncio.wait({working})
            raise
        finally:
            if shown is not None:
                shown.table.close()
        return await working

    def show(self, record: ItemRecord) -> None:
        """Make the files of an item that nobody works now, as it stands. Where that fails, it is tried again later."""
        try:
            table = TaskTable(self.home)
            try:
                self._show(record, table)
            finally:
                table.close()
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files of %s were not made: %s", record.item, wrong)

    def refresh(self) -> None:
        """What a worker does before it looks for items: take up what everything's pause held, and bring the files up to
        date. Work does not depend on the latter."""
        self._take_up()
        try:
            self.catch_up()
        except (OSError, DaikuError) as wrong:
            logger.warning("the context files were not brought up to date: %s", wrong)

    def _take_up(self) -> None:
        """Queue again what the file held that pauses everything, now that it is gone (S2R.5, S2R.10)."""
        if is_pause_wanted(self.home):
            return
        oldest = oldest_kept()
        for record in self.items.records("paused"):
            if record.wanted not in HALTS:
                continue
            if record.shown.updated_at < oldest:
                logger.info("%s is paused for more than %d days: it is left so", record.item, KEPT_DAYS)
                continue
            self.items.requeue(record.item)

    def catch_up(self) -> None:
        """Make what is missing or says something old, and clear away what is too old. What is worked now is left alone.
        Raises OSError, DaikuError."""
        oldest = oldest_kept()
        table = TaskTable(self.home)
        try:
            for uuid in table.over_before(oldest):
                remove_task(self.home, uuid)
                table.remove(uuid)
            known = dict(table.statuses())
            for record in self.items.since(oldest, "queued", "paused", "waiting", *OVER):
                status = status_of(record)
                parent = parent_of(status)
                if parent is None or not record.facts.uuid or record.shown.updated_at < oldest:
                    continue
                if known.get(record.facts.uuid) != status or not is_below(
                    self.home, parent, record.facts.uuid
                ):
                    self._show(record, table)
        finally:
            table.close()

    def _show(self, record: ItemRecord, table: TaskTable) -> None:
        parent = parent_of(status_of(record))
        if parent is None or not record.facts.uuid:
            return
        folder = task_folder(self.home, parent, record.facts.uuid)
        show = TaskShow(record, folder, table, Worked(system=folder.system()), self.checklist_of(record.item))
        show.whole(self.chunks_of(record))

    def checklist_of(self, item: str) -> str:
        """The id of the comment that shows the item's plan."""
        found = self.intents.find(item, "progress")
        return found.reference if found is not None else ""

    def chunks_of(self, record: ItemRecord, after: int = 0) -> Iterable[Chunk]:
        """What the journal holds of the item's session after that number."""
        session = record.shown.session_id
        return self.journal.chunks(session, after) if session else ()


def oldest_kept() -> str:
    """The time before which what is over is cleared away."""
    time = datetime.now(UTC) - timedelta(days=KEPT_DAYS)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Following:
    """The files of one item while its run is under way."""

    def __init__(self, files: ContextFiles, record: ItemRecord, worked: Worked) -> None:
        self._files, self._record = files, record
        self.table = TaskTable(files.home)
        folder = task_folder(files.home, "running", record.facts.uuid)
        self._show = TaskShow(record, folder, self.table, worked)
        self._seq: int | None = None

    def look(self) -> None:
        """Add what has happened since the last look; at the first one everything is written anew."""
        chunks = list(self._files.chunks_of(self._record, self._seq or 0))
        if self._seq is None:
            self._show.whole(chunks)
        elif chunks:
            self._show.more(chunks)
        self._seq = chunks[-1].seq if chunks else self._seq or 0
