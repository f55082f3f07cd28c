"""Wire methods on work items: listed, watched and shown, paused, resumed, cancelled, tried again, taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from daiku import api
from daiku.domain.items.item import WorkItem
from daiku.fronts.lsp.connection import ClientConnection
from daiku.items.listing import ItemAction, ItemStore, ask_item, folder_of_item, items_of, revision_of

LOOK_SECONDS = 0.5
"""Between two looks at what other processes changed."""
LONGEST = 60.0
"""Seconds until a client that watches is answered though nothing changed."""
PAUSED_WITHIN = 30.0
"""Seconds that an item which is taken over has for its next step."""


async def work_list(c: ClientConnection, p: api.WorkListParams) -> api.WorkListResult:
    return api.WorkListResult(items=items_of(await c.app()).list(p.state))


async def work_watch(c: ClientConnection, p: api.WorkWatchParams) -> api.WorkWatchResult:
    """Answers as soon as the items are not those of `revision` any more."""
    clock = asyncio.get_running_loop()
    until = clock.time() + LONGEST
    app = await c.app()
    items = items_of(app)
    while True:
        if (revision := revision_of(app, items)) != p.revision or clock.time() >= until:
            return api.WorkWatchResult(revision=revision, items=items.list())
        await asyncio.sleep(LOOK_SECONDS)
        if (now := await c.app()) is not app:  # the settings have changed
            app, items = now, items_of(now)


async def work_show(c: ClientConnection, p: api.WorkItemRef) -> WorkItem:
    return items_of(await c.app()).find(p.item)


def work_ask(wanted: ItemAction) -> Callable[[ClientConnection, api.WorkItemRef], Awaitable[WorkItem]]:
    """Return the method that asks for something to be done with an item. A run that works the item reads it at its
    next step; until then the item's state does not change."""

    async def ask(c: ClientConnection, p: api.WorkItemRef) -> WorkItem:
        return ask_item(items_of(await c.app()), p.item, wanted)

    return ask


async def work_take_over(c: ClientConnection, p: api.WorkItemRef) -> api.WorkPlace:
    """Have nobody work the item any more, and say where its files are."""
    app = await c.app()
    items = items_of(app)
    item = items.find(p.item)
    if item.state in ("queued", "processing", "waiting"):
        item = await _paused(items, ask_item(items, p.item, "pause"))
    return api.WorkPlace(item=item, folder=folder_of_item(app, item))


async def _paused(items: ItemStore, item: WorkItem) -> WorkItem:
    clock = asyncio.get_running_loop()
    until = clock.time() + PAUSED_WITHIN
    while item.state == "processing" and clock.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        item = items.find(item.item)
    return item
