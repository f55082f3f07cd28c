"""One file brought back to what a checkpoint kept of it: as a change of its text, or in bytes."""

from __future__ import annotations

from daiku.core.ports import Workspace
from daiku.domain.errors import DaikuError
from daiku.domain.work.patches import FileChange
from daiku.workspace.diskio import make_folders, remove_file, replace_file
from daiku.workspace.encodings import decode


async def change_back(workspace: Workspace, path: str, before: bytes | None) -> FileChange | bool:
    """Return the change that restores `path`; True if it must be written as bytes, False if nothing differs."""
    text = decode(before) if before is not None else None
    exists = await workspace.exists(path)
    if before is not None and text is None:
        return True
    try:
        now = (await workspace.read(path)).text if exists else None
    except DaikuError:
        return True
    if now is None and text is None:
        return False
    if text is None:
        return FileChange(path=path, kind="delete", old=now)
    if now is None:
        plain = text.encoding == "utf-8" and not text.bom
        return FileChange(path=path, kind="create", new=text.text) if plain else True
    return FileChange(path=path, kind="edit", old=now, new=text.text) if now != text.text else False


def put_bytes(workspace: Workspace, path: str, data: bytes | None) -> None:
    """Write `path` as it was, or remove it where `data` is None. Raises OSError, DaikuError."""
    roots, real = workspace.roots, workspace.locate(path)
    if data is None:
        remove_file(roots, real, path)
        return
    make_folders(roots, real.parent, path)
    replace_file(roots, real, data, path)
