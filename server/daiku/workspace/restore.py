"""Files compared with what a checkpoint kept of them, or brought back to it: as a change of text, or in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daiku.core.ports import Workspace
from daiku.domain.errors import DaikuError
from daiku.domain.work.patches import FileChange, Patch
from daiku.workspace.contents import KeptFile
from daiku.workspace.diskio import make_folders, remove_file, replace_file
from daiku.workspace.encodings import decode

if TYPE_CHECKING:
    from daiku.core.changes.review import Content


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


def compare_files(
    files: Sequence[KeptFile], current: Sequence[Content], content_of: Callable[[str | None], Content]
) -> tuple[Patch, Patch] | None:
    """Return the changes of an edit that the `current` contents show, and those that they do not; None if one shows neither."""
    applied: list[FileChange] = []
    missing: list[FileChange] = []
    for kept, now in zip(files, current, strict=True):
        old, new = content_of(kept.content), content_of(kept.after)
        if not kept.known or now not in (old, new):
            return None
        kind = "create" if old is None else "delete" if new is None else "edit"
        texts = {name: content for name, content in (("old", old), ("new", new)) if isinstance(content, str)}
        (applied if now == new else missing).append(FileChange(path=kept.path, kind=kind, **texts))
    return Patch(files=tuple(applied)), Patch(files=tuple(missing))
