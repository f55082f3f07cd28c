"""An edit that a person asked for by pointing at its place: which calls stay inside it."""

from __future__ import annotations

from daiku.core.changes.scope import EditPlace, edit_place
from daiku.core.ports import Workspace
from daiku.domain.errors import DaikuError
from daiku.domain.runs import EditGrant


async def granted_place(grant: EditGrant | None, workspace: Workspace) -> EditPlace | None:
    """The place as the file stands now; None where nothing was granted or the file cannot be read."""
    if grant is None:
        return None
    try:
        name = workspace.relative(workspace.locate(grant.uri))
        return edit_place(name, (await workspace.read(grant.uri)).text, grant.range)
    except DaikuError:
        return None
