"""Changes of a session over the wire: listed, decided on, brought back."""

from __future__ import annotations

from pydantic import BaseModel

from daiku import api
from daiku.lsp.connection import ClientConnection
from daiku.sdk.fronts import changed_everywhere, changed_files, restore_result
from daiku.sdk.work_items import only_here


async def changes_list(c: ClientConnection, p: api.ChangesParams) -> BaseModel:
    if p.session_id is not None:
        return await _listed(c, p.session_id)
    return api.ChangesResult(files=changed_everywhere(await (await c.app()).reviews.everywhere()))


async def changes_decide(c: ClientConnection, p: api.DecideParams) -> BaseModel:
    app = await c.app()
    only_here(app, p.session_id, c.workspace_key)
    reviews = app.reviews
    checkpoint = await reviews.decide(p.session_id, p.decision, p.path, p.hunk_ids)
    return await _listed(c, p.session_id, checkpoint if p.decision == "reject" else None)


async def changes_original(c: ClientConnection, p: api.OriginalParams) -> BaseModel:
    return api.OriginalResult(text=await (await c.app()).reviews.original(p.session_id, p.path))


async def checkpoint_restore(c: ClientConnection, p: api.CheckpointRef) -> BaseModel:
    app = await c.app()
    only_here(app, app.checkpoints.require(p.checkpoint_id).session, c.workspace_key)
    return restore_result(await app.reviews.restore(p.checkpoint_id))


async def _listed(c: ClientConnection, session: str, checkpoint: str | None = None) -> api.ChangesResult:
    found = await (await c.app()).reviews.changes(session)
    return api.ChangesResult(files=changed_files(found, session), checkpoint_id=checkpoint)
