"""The doctor over the wire: what is wrong on this machine, in the person's language."""

from __future__ import annotations

import os

from daiku import api
from daiku.doctor import files, inside, machine
from daiku.lsp.connection import ClientConnection


async def examine(c: ClientConnection) -> api.DoctorResult:
    """Return all of the doctor's findings. Raises DaikuError if the settings are wrong."""
    app = await c.app()
    place = app.workspace.roots[0] if app.workspace.roots else None
    found = [
        *machine(),
        *files(place, os.environ, trusted=c.offer.trusted is not False),
        *await inside(app),
    ]
    return api.DoctorResult(findings=tuple(found))
