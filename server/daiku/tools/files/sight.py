"""Resolve a path of a call to a file that the agent may see or change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from daiku.domain.errors import ToolValidationError
from daiku.guard.rules.protected.names import holds_secrets
from daiku.run.rules.outside import TextFile
from daiku.texts.text import text
from daiku.tools.tool import ToolContext
from daiku.workspace.diskio import read_bytes
from daiku.workspace.encodings import decode
from daiku.workspace.outputs import find_dependency_folder, is_dependency
from daiku.workspace.paths import refuse

IGNORED = "ignored by git"
_OUTSIDE = "a dependency outside the workspace, read-only"


class VisiblePath(NamedTuple):
    """A real path that the agent may see. `note`: what is special about it, if anything.

    `folder`: the dependency folder that contains it, if that is outside the workspace.
    """

    real: Path
    note: str = ""
    folder: Path | None = None


def resolve_visible(context: ToolContext, path: str) -> VisiblePath:
    """Resolve `path` to a path that the agent may see.

    A path that git ignores is allowed if it is named. Installed dependencies outside the workspace are
    allowed too. Raises ToolValidationError if the path is outside or closed to the agent.
    """
    try:
        real = context.workspace.locate(path)
    except ToolValidationError:
        dependency = _find_dependency(context, path)
        if dependency is None:
            raise
        return dependency
    if context.workspace.hidden(real) and real.exists():
        raise refuse(text("files.hidden", path=context.workspace.relative(real)), text("files.ask_person"))
    return VisiblePath(real, IGNORED if context.workspace.ignored(real) else "")


def _find_dependency(context: ToolContext, path: str) -> VisiblePath | None:
    """Return the path if it is in a dependency folder of the project outside the workspace."""
    roots = context.workspace.roots
    if not roots or not path.strip() or "\0" in path or path.startswith("~"):
        return None
    real = Path(os.path.realpath(roots[0] / path))
    folder = find_dependency_folder(roots, real)
    if folder is None or holds_secrets(real.as_posix()) or holds_secrets(path):
        return None
    return VisiblePath(real, _OUTSIDE, folder)


def resolve_writable(context: ToolContext, path: str) -> Path:
    """Resolve `path` to a path that a file tool may change or create. Raises ToolValidationError."""
    real = context.workspace.locate(path)
    name = context.workspace.relative(real)
    if context.workspace.hidden(real) and real.exists():
        raise refuse(text("files.hidden", path=name), text("files.ask_person"))
    if is_dependency(Path(name)):
        raise refuse(text("files.dependency", path=name), text("files.package_manager"))
    return real


async def read_text(visible: VisiblePath, path: str, context: ToolContext) -> TextFile:
    """Read the text of `path`. Raises ToolValidationError, as reading in the workspace does."""
    if visible.folder is None:
        return await context.workspace.read(path)
    name = visible.real.as_posix()
    decoded = decode(read_bytes((visible.folder,), visible.real, name))
    if decoded is None:
        raise refuse(text("files.binary", path=name))
    return TextFile(name, decoded.text, decoded.encoding, decoded.bom)
