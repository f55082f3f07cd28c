"""Wire methods that list what was answered with "always", and take it back."""

from __future__ import annotations

from daiku import api
from daiku.domain.errors import Failure, UsageError
from daiku.lsp.connection import ClientConnection
from daiku.sdk.fronts import App
from daiku.texts.text import text
from daiku.trace.remembered_answers import SERVER, all_answers, revoke_answer


async def grants_list(c: ClientConnection, _: api.Nothing) -> api.GrantsResult:
    return _all(c, await c.app())


async def grants_revoke(c: ClientConnection, p: api.GrantRef) -> api.GrantsResult:
    app = await c.app()
    if not revoke_answer(app.grants, app.consents, c.workspace_key, p.key):
        raise UsageError(Failure(kind="not_found", message=text("editor.not_remembered")))
    if p.key.startswith(SERVER):
        app.servers.forget(p.key.removeprefix(SERVER))
    return _all(c, app)


def _all(c: ClientConnection, app: App) -> api.GrantsResult:
    found = all_answers(app.grants, app.consents, c.workspace_key)
    return api.GrantsResult(
        grants=tuple(api.Grant(key=one.key, answer=one.answer, what=one.what) for one in found),
        workspace=c.workspace_key,
    )
