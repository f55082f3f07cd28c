"""Wire methods of the playbook: bullets, pending changes, and a watch."""

from __future__ import annotations

import asyncio
from functools import partial
from weakref import WeakKeyDictionary

from daiku import api
from daiku.fronts.lsp.connection import ClientConnection
from daiku.library.fronts import App
from daiku.playbook.desk import PlaybookDesk, build_desk

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
