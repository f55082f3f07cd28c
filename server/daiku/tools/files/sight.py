"""Where a path of a call leads: what the agent may see by name, and what it may change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from daiku.domain.errors import ToolValidationError
from daiku.guard.rules.protected.paths import holds_secrets
from daiku.run.rules.outside import TextFile
from daiku.texts.text import text
from daiku.tools.tool import ToolContext
from daiku.workspace.dependencies import dependency_folder, is_dependency
from daiku.workspace.diskio import read_bytes
from daiku.workspace.encodings import decode
from daiku.workspace.paths import refuse

IGNORED = "ignored by git"
_OUTSIDE = "a dependency outside the workspace, read-only"


class Sight(NamedTuple):
    """A real place that the agent may see. `note` says what is special about it, if anything; `folder` is the
    folder of dependencies that it is in, where that lies outside the workspace."""

    real: Path
    note: str = ""
    folder: Path | None = None


def see(context: ToolContext, path: str) -> Sight:
    """The real place of `path`. What git ignores may be seen by its name, and installed dependencies outside the
    workspace. Raises ToolValidationError where it is outside or closed to the agent."""
    try:
        real = context.workspace.locate(path)
    except ToolValidationError:
        outside = _dependency(context, path)
        if outside is None:
            raise
        return outside
    if context.workspace.hidden(real) and real.exists():
        raise refuse(text("files.hidden", path=context.workspace.relative(real)), text("files.ask_person"))
    return Sight(real, IGNORED if context.workspace.ignored(real) else "")


def _dependency(context: ToolContext, path: str) -> Sight | None:
    """A place in a folder of the project's dependencies that lies outside of the workspace."""
    roots = context.workspace.roots
    if not roots or not path.strip() or "\0" in path or path.startswith("~"):
        return None
    real = Path(os.path.realpath(roots[0] / path))
    folder = dependency_folder(roots, real)
    if folder is None or holds_secrets(real.as_posix()) or holds_secrets(path):
        return None
    return Sight(real, _OUTSIDE, folder)


def changeable(context: ToolContext, path: str) -> Path:
    """The real place of `path`, which a file tool may change or make. Raises ToolValidationError otherwise."""
    real = context.workspace.locate(path)
    name = context.workspace.relative(real)
    if context.workspace.hidden(real) and real.exists():
        raise refuse(text("files.hidden", path=name), text("files.ask_person"))
    if is_dependency(Path(name)):
        raise refuse(text("files.dependency", path=name), text("files.package_manager"))
    return real


async def read_text(sight: Sight, path: str, context: ToolContext) -> TextFile:
    """The text that `path`, seen as `sight`, holds. Raises ToolValidationError as reading in the workspace does."""
    if sight.folder is None:
        return await context.workspace.read(path)
    name = sight.real.as_posix()
    decoded = decode(read_bytes((sight.folder,), sight.real, name))
    if decoded is None:
        raise refuse(text("files.binary", path=name))
    return TextFile(name, decoded.text, decoded.encoding, decoded.bom)
