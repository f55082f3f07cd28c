"""The doctor over the wire: what is wrong on this machine, in the person's language."""

from __future__ import annotations

import os

from daiku import api
from daiku.doctor import files, inside, machine
from daiku.lsp.connection import ClientConnection
from daiku.texts.text import render


async def examine(c: ClientConnection) -> api.DoctorResult:
    """Everything that was looked at. Raises DaikuError where the settings are wrong."""
    app, language = await c.app(), c.protocol.language
    place = app.workspace.roots[0] if app.workspace.roots else None
    found = [
        *machine(),
        *files(place, os.environ, trusted=c.offer.trusted is not False),
        *await inside(app),
    ]
    return api.DoctorResult(
        findings=tuple(
            f.model_copy(update={"what": render(f.what, language), "mend": render(f.mend, language)})
            for f in found
        )
    )
