"""Wire methods of work items: list, watch, show, pause, resume, cancel, retry, take over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from daiku import api
from daiku.domain.items.item import WorkItem
from daiku.fronts.lsp.connection import ClientConnection
from daiku.items.listing import ItemAction, ItemStore, ask_item, find_item_folder, get_items, get_revision

LOOK_SECONDS = 0.5
"""Poll interval in seconds for changes by other processes."""
LONGEST = 60.0
"""Seconds after which a watching client gets a response although nothing changed."""
PAUSED_WITHIN = 30.0
"""Timeout in seconds for an item that is taken over to pause at its next step."""


async def work_list(c: ClientConnection, p: api.WorkListParams) -> api.WorkListResult:
    return api.WorkListResult(items=get_items(await c.app()).list(p.state))


async def work_watch(c: ClientConnection, p: api.WorkWatchParams) -> api.WorkWatchResult:
    """Wait until the items differ from `revision`."""
    clock = asyncio.get_running_loop()
    until = clock.time() + LONGEST
    app = await c.app()
    items = get_items(app)
    while True:
        if (revision := get_revision(app, items)) != p.revision or clock.time() >= until:
            return api.WorkWatchResult(revision=revision, items=items.list())
        await asyncio.sleep(LOOK_SECONDS)
        if (current := await c.app()) is not app:  # the settings have changed
            app, items = current, get_items(current)


async def work_show(c: ClientConnection, p: api.WorkItemRef) -> WorkItem:
    return get_items(await c.app()).find(p.item)


def work_ask(request: ItemAction) -> Callable[[ClientConnection, api.WorkItemRef], Awaitable[WorkItem]]:
    """Return the method that sends a signal to an item.

    The run that processes the item reads it at its next step; until then the item's state is unchanged.
    """

    async def ask(c: ClientConnection, p: api.WorkItemRef) -> WorkItem:
        return ask_item(get_items(await c.app()), p.item, request)

    return ask


async def work_take_over(c: ClientConnection, p: api.WorkItemRef) -> api.WorkPlace:
    """Stop the processing of an item, and return the folder of its files."""
    app = await c.app()
    items = get_items(app)
    item = items.find(p.item)
    if item.state in ("queued", "processing", "waiting"):
        item = await _wait_until_paused(items, ask_item(items, p.item, "pause"))
    return api.WorkPlace(item=item, folder=find_item_folder(app, item))


async def _wait_until_paused(items: ItemStore, item: WorkItem) -> WorkItem:
    clock = asyncio.get_running_loop()
    until = clock.time() + PAUSED_WITHIN
    while item.state == "processing" and clock.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        item = items.find(item.item)
    return item
