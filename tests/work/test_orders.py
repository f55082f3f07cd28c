"""Orders of a person: the label on the forge follows them, if no worker processes the item."""

from __future__ import annotations

import pytest

from daiku.domain.errors import UsageError
from daiku.domain.items.item import ItemState, SetState
from daiku.items.hearing import apply_left_open
from daiku.items.intents import ask_item
from daiku.items.items import ItemStore
from daiku.items.record import ItemAction
from tests.work.parts import parts_of
from tests.work.test_retrying import Moody, claimed, key, store_of

ITEM = str(key(0))


async def deliver_labels(items: ItemStore) -> list[SetState]:
    """Deliver what is open, and return the labels that were set."""
    forge = Moody()
    for _ in range(2):
        hearing = parts_of(items, {"files": forge}, name="worker-2")
        await apply_left_open(hearing)
    return [each for each in forge.done if isinstance(each, SetState)]


@pytest.mark.parametrize(("wanted", "after"), [("cancel", "stopped"), ("pause", "paused")])
@pytest.mark.parametrize("state", ["queued", "waiting"])
async def test_the_label_of_an_item_that_nobody_works_follows_its_state_once(
    state: ItemState, wanted: ItemAction, after: ItemState
) -> None:
    """B23.4"""
    items = store_of(1)
    items.change(claimed(items), state=state)
    assert ask_item(items, ITEM, wanted).state == after
    assert await deliver_labels(items) == [SetState(state=after)]


async def test_a_label_that_is_not_wanted_any_more_is_not_set() -> None:
    items = store_of(1)
    ask_item(items, ITEM, "cancel")
    assert ask_item(items, ITEM, "retry").state == "queued"
    assert await deliver_labels(items) == []


@pytest.mark.parametrize("wanted", ["cancel", "pause"])
async def test_the_worker_of_an_item_sets_its_label(wanted: ItemAction) -> None:
    items = store_of(1)
    claimed(items)
    assert ask_item(items, ITEM, wanted).wanted == wanted
    assert await deliver_labels(items) == []


async def test_an_order_that_is_not_possible_changes_nothing() -> None:
    items = store_of(1)
    with pytest.raises(UsageError):
        ask_item(items, ITEM, "resume")
    assert await deliver_labels(items) == []
