"""What fronts may use of work items: the store of them, what can be asked of one, how workers are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from daiku.app import App
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.items.item import WorkItem
from daiku.items.intents import ask_item
from daiku.items.items import ItemStore
from daiku.items.record import ItemAction
from daiku.items.workers.alive import Health, healths
from daiku.settings.config import Config
from daiku.texts.text import text
from daiku.trace.stores import open_stores

__all__ = [
    "Health",
    "ItemAction",
    "ItemStore",
    "ask_item",
    "healths",
    "items_of",
    "only_here",
    "open_items",
    "revision_of",
    "tree_of",
]


def items_of(app: App) -> ItemStore:
    """The work items of the database in which the app keeps its conversations."""
    return ItemStore(app.journal.database)


def revision_of(app: App, items: ItemStore) -> str:
    """Return a revision that changes if an item changes, or the run of an active one writes to its session."""
    return " ".join([items.revision(), *(str(_said(app, item)) for item in items.list("processing"))])


def tree_of(app: App, item: WorkItem) -> str:
    """The folder in which the item's files are: that of its session; empty where it is not on this machine."""
    try:
        folder = app.journal.folder_of(item.session_id)
    except DaikuError:
        return ""
    return folder if folder and Path(folder).is_dir() else ""


def only_here(app: App, session: str, workspace: str) -> None:
    """Raise UsageError if the session is that of an item whose files are not in `workspace`."""
    if app.journal.folder_of(session) == workspace:
        return
    item = next((each for each in items_of(app).list() if each.session_id == session), None)
    if item is not None:
        message = text("work.files_elsewhere", item=item.item)
        raise UsageError(Failure(kind="usage", message=message, hint=text("work.take_it_over")))


def _said(app: App, item: WorkItem) -> int:
    try:
        return app.journal.last_seq(item.session_id)
    except DaikuError:
        return 0


@contextmanager
def open_items(config: Config, home: Path, redact: Callable[[str], str]) -> Generator[ItemStore]:
    """The work items alone: to look at them needs no model and no forge. Raises UsageError."""
    stores = open_stores(config.storage.place(home), redact)
    try:
        yield ItemStore(stores.database)
    finally:
        stores.close()
