"""Wire methods of the playbook and of work items."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from weakref import WeakKeyDictionary

from daiku import api
from daiku.domain.items.item import WorkItem
from daiku.fronts.lsp.connection import ClientConnection
from daiku.items.listing import ItemAction, ItemStore, ask_item, find_item_folder, get_items, get_revision
from daiku.library.fronts import App
from daiku.playbook.desk import PlaybookDesk, build_desk

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


LOOK_SECONDS = 0.5
"""Poll interval in seconds for changes by other processes."""
LONGEST = 60.0
"""Seconds after which a watching client gets a response although nothing changed."""
_DESKS = WeakKeyDictionary[ClientConnection, tuple[App, PlaybookDesk]]()


async def playbook_list(c: ClientConnection, p: api.PlaybookListParams) -> api.PlaybookListResult:
    return (await _up_to_date_desk(c)).list(p.scope, p.section, everything=p.all)


async def playbook_search(c: ClientConnection, p: api.PlaybookSearchParams) -> api.PlaybookSearchResult:
    return (await _up_to_date_desk(c)).search(p.query, p.scope, p.section, p.top_k)


async def playbook_show(c: ClientConnection, p: api.PlaybookRef) -> api.PlaybookShowResult:
    return (await _up_to_date_desk(c)).show(p.id)


async def playbook_add(c: ClientConnection, p: api.PlaybookAddParams) -> api.PlaybookChange:
    return (await _client_desk(c)).add(p.section, p.content, p.scope, p.keywords, propose=p.propose)


async def playbook_update(c: ClientConnection, p: api.PlaybookUpdateParams) -> api.PlaybookChange:
    return (await _client_desk(c)).update(p.id, p.content, p.keywords, active=p.active)


async def playbook_remove(c: ClientConnection, p: api.PlaybookRef) -> api.PlaybookChange:
    return (await _client_desk(c)).update(p.id, active=False)


async def _up_to_date_desk(c: ClientConnection) -> PlaybookDesk:
    """Return the desk after learning from runs that killed processes left behind."""
    learner = (await c.app()).runs.learner
    await learner.catch_up()
    await learner.settle(reflections=False)
    return await _client_desk(c)


async def _client_desk(c: ClientConnection) -> PlaybookDesk:
    """Return the client's desk, which is rebuilt only when the settings or the folders change."""
    app = await c.app()
    cached = _DESKS.get(c)
    if cached is None or cached[0] is not app:
        build = partial(build_desk, trusted=app.runs.services.trusted)
        roots, language = app.workspace.roots, c.protocol.language
        desk = await asyncio.to_thread(build, app.config, app.journal, roots, language)  # asks git
        cached = _DESKS[c] = (app, desk)
    return cached[1]


async def playbook_deltas(c: ClientConnection, p: api.PlaybookDeltasParams) -> api.PlaybookDeltasResult:
    return api.PlaybookDeltasResult(deltas=(await _client_desk(c)).deltas(p.scope, p.statuses, p.newest))


async def playbook_review(c: ClientConnection, p: api.PlaybookReviewParams) -> api.PlaybookReviewResult:
    return (await _client_desk(c)).review(p.accept, p.reject, p.undo)


async def playbook_watch(c: ClientConnection, p: api.PlaybookWatchParams) -> api.PlaybookWatchResult:
    """Wait until the playbooks differ from `revision`, and until pending lessons are recorded in their session.

    No stream of a run carries these, because the run has ended.
    """
    clock = asyncio.get_running_loop()
    until = clock.time() + LONGEST
    while True:
        desk = await _client_desk(c)
        if desk.revision != p.revision or clock.time() >= until:
            await (await c.app()).runs.learner.settle(reflections=False)
            return desk.get_status()
        await asyncio.sleep(LOOK_SECONDS)
