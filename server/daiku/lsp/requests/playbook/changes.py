"""Wire methods on the changes of the playbook: those that wait, decided on, and a watch over all of them."""

from __future__ import annotations

import asyncio

from daiku import api
from daiku.lsp.connection import ClientConnection
from daiku.lsp.requests.playbook.bullets import client_desk

LOOK_SECONDS = 0.5
"""Between two looks at what other processes changed."""
LONGEST = 60.0
"""Seconds until a client that watches is answered though nothing changed."""


async def playbook_deltas(c: ClientConnection, p: api.PlaybookDeltasParams) -> api.PlaybookDeltasResult:
    return api.PlaybookDeltasResult(deltas=(await client_desk(c)).deltas(p.scope, p.statuses, p.newest))


async def playbook_review(c: ClientConnection, p: api.PlaybookReviewParams) -> api.PlaybookReviewResult:
    return (await client_desk(c)).review(p.accept, p.reject, p.undo)


async def playbook_watch(c: ClientConnection, p: api.PlaybookWatchParams) -> api.PlaybookWatchResult:
    """Answers as soon as the playbooks are not those of `revision` any more, and what is being learnt now is told in its
    session: no stream of a run carries that, for the run has ended."""
    clock = asyncio.get_running_loop()
    until = clock.time() + LONGEST
    while True:
        desk = await client_desk(c)
        if desk.revision != p.revision or clock.time() >= until:
            await (await c.app()).runs.afterwards.settle(looks=False)
            return desk.watched()
        await asyncio.sleep(LOOK_SECONDS)
