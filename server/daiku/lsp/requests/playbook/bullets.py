"""Wire methods on the bullets of the playbook: listed, searched, shown, added, changed, removed."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from daiku import api
from daiku.lsp.connection import ClientConnection
from daiku.sdk.fronts import App
from daiku.sdk.playbook.desk import PlaybookDesk, desk_of

_DESKS = WeakKeyDictionary[ClientConnection, tuple[App, PlaybookDesk]]()


async def playbook_list(c: ClientConnection, p: api.PlaybookListParams) -> api.PlaybookListResult:
    return (await _caught_up(c)).list(p.scope, p.section, everything=p.all)


async def playbook_search(c: ClientConnection, p: api.PlaybookSearchParams) -> api.PlaybookSearchResult:
    return (await _caught_up(c)).search(p.query, p.scope, p.section, p.top_k)


async def playbook_show(c: ClientConnection, p: api.PlaybookRef) -> api.PlaybookShowResult:
    return (await _caught_up(c)).show(p.id)


async def playbook_add(c: ClientConnection, p: api.PlaybookAddParams) -> api.PlaybookChange:
    return (await client_desk(c)).add(p.section, p.content, p.scope, p.keywords, propose=p.propose)


async def playbook_update(c: ClientConnection, p: api.PlaybookUpdateParams) -> api.PlaybookChange:
    return (await client_desk(c)).update(p.id, p.content, p.keywords, active=p.active)


async def playbook_remove(c: ClientConnection, p: api.PlaybookRef) -> api.PlaybookChange:
    return (await client_desk(c)).update(p.id, active=False)


async def _caught_up(c: ClientConnection) -> PlaybookDesk:
    """The desk, once it was learnt from what runs of processes that were killed left behind."""
    afterwards = (await c.app()).runs.afterwards
    await afterwards.catch_up()
    await afterwards.settle(looks=False)
    return await client_desk(c)


async def client_desk(c: ClientConnection) -> PlaybookDesk:
    """One desk for as long as the settings and the folders stay: what it searches in is read once."""
    app = await c.app()
    known = _DESKS.get(c)
    if known is None or known[0] is not app:
        desk = await asyncio.to_thread(desk_of, app, c.protocol.language)  # asks git
        known = _DESKS[c] = (app, desk)
    return known[1]
