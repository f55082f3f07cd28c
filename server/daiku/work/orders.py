"""Orders of a person about an item, given in any process: its state, and the label that goes with it."""

from __future__ import annotations

from daiku.domain.items.intents import SetState
from daiku.domain.items.item import WorkItem
from daiku.work.intents import IntentStore
from daiku.work.items import ItemStore
from daiku.work.record import Claim, Wanted


def ask_item(items: ItemStore, item: str, wanted: Wanted) -> WorkItem:
    """Pause, resume, cancel or retry an item. If nobody works it, the next look of a worker changes its label. Raises
    UsageError: unknown, or not possible in its state."""
    intents = IntentStore(items.database, items)
    with items.database.transaction():
        shown = items.ask(item, wanted)
        record = items.record(item)
        if record is not None and shown.state in ("paused", "stopped"):
            intents.want(Claim(item, record.fence), "state", SetState(state=shown.state))
    return shown
