"""The interface of work items for fronts: the store, requests about an item, and the workers' health."""

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
from daiku.items.workers.alive import WorkerHealth, read_healths
from daiku.settings.config import Config
from daiku.texts.text import text
from daiku.trace.stores import open_stores

__all__ = [
    "ItemAction",
    "ItemStore",
    "WorkerHealth",
    "ask_item",
    "find_item_folder",
    "get_items",
    "get_revision",
    "open_items",
    "read_healths",
    "require_local_files",
]


def get_items(app: App) -> ItemStore:
    """Return the store of work items in the app's database."""
    return ItemStore(app.journal.database)


def get_revision(app: App, items: ItemStore) -> str:
    """Return a mark that changes when an item changes, or the run of an active one writes to its session."""
    return " ".join(
        [items.revision(), *(str(_read_last_seq(app, item)) for item in items.list("processing"))]
    )


def find_item_folder(app: App, item: WorkItem) -> str:
    """Return the folder of the item's files; empty if it is not on this machine."""
    try:
        folder = app.journal.folder_of(item.session_id)
    except DaikuError:
        return ""
    return folder if folder and Path(folder).is_dir() else ""


def require_local_files(app: App, session: str, workspace: str) -> None:
    """Raise UsageError if the session is that of an item whose files are not in `workspace`."""
    if app.journal.folder_of(session) == workspace:
        return
    item = next((listed for listed in get_items(app).list() if listed.session_id == session), None)
    if item is not None:
        message = text("work.files_elsewhere", item=item.item)
        raise UsageError(Failure(kind="usage", message=message, hint=text("work.take_it_over")))


def _read_last_seq(app: App, item: WorkItem) -> int:
    try:
        return app.journal.last_seq(item.session_id)
    except DaikuError:
        return 0


@contextmanager
def open_items(config: Config, home: Path, redact: Callable[[str], str]) -> Generator[ItemStore]:
    """Open the store of work items alone, without a model or a forge. Raises UsageError."""
    stores = open_stores(config.storage.place(home), redact)
    try:
        yield ItemStore(stores.database)
    finally:
        stores.close()
