"""Tools that change files: files/write, files/edit, files/patch, files/move, files/delete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import Field

from daiku.core.cut import cut_middle
from daiku.core.diff import patch_diff
from daiku.core.edits import apply_edits
from daiku.core.patch import build_patch, parse_patch, paths_of
from daiku.core.refusal import Refusal
from daiku.domain.errors import DaikuError, StaleVersionError
from daiku.domain.events import Checkpointed, Edited
from daiku.domain.patches import FileChange, FileStat, Patch, SearchReplace
from daiku.domain.tools import ToolResult
from daiku.tools.paths import refuse
from daiku.tools.reading import READING_TOOLS, visible
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed

TRIES = 3
"""How often an edit is made anew when the file moved on under it."""
_SHOWN_DIFF = 4000
_STORED_DIFF = 60_000


class WriteArgs(Args):
    path: str
    content: str = Field(description="the whole new text of the file")


class EditArgs(Args):
    path: str
    edits: tuple[SearchReplace, ...] = Field(min_length=1)


class PatchArgs(Args):
    patch: str


class MoveArgs(Args):
    path: str
    to: str


class DeleteArgs(Args):
    path: str


Build = Callable[[Any, ToolContext], Awaitable[Patch | Refusal]]


async def _text(path: str, context: ToolContext) -> str | None:
    """The text of `path`, None where there is no file. Raises ToolValidationError."""
    visible(context, path)
    if not await context.workspace.exists(path):
        return None
    return (await context.workspace.read(path)).text


def _name(path: str, context: ToolContext) -> str:
    return context.workspace.relative(context.workspace.locate(path))


async def _write(args: WriteArgs, context: ToolContext) -> Patch | Refusal:
    name, old = _name(args.path, context), await _text(args.path, context)
    new = args.content
    if old is None:
        return Patch(files=(FileChange(path=name, kind="create", new=new),))
    if "\r\n" in old and "\r" not in new and old.count("\n") == old.count("\r\n"):
        new = new.replace("\n", "\r\n")
    if new == old:
        return Refusal(f"{name} has this text already: nothing was written.")
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _edit(args: EditArgs, context: ToolContext) -> Patch | Refusal:
    name, old = _name(args.path, context), await _text(args.path, context)
    if old is None:
        if len(args.edits) == 1 and not args.edits[0].search:
            return Patch(files=(FileChange(path=name, kind="create", new=args.edits[0].replace),))
        return Refusal(f"There is no file {name}. files/write makes new files.")
    new = await asyncio.to_thread(apply_edits, old, args.edits)
    if isinstance(new, Refusal):
        return Refusal(f"{name}: {new.text}")
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _patch(args: PatchArgs, context: ToolContext) -> Patch | Refusal:
    intents = parse_patch(args.patch)
    if isinstance(intents, Refusal):
        return intents
    paths = paths_of(intents)
    names = {path: _name(path, context) for path in paths}
    if len(set(names.values())) < len(paths):
        twice = sorted(path for path in paths if list(names.values()).count(names[path]) > 1)
        return Refusal(f"One file is named in several ways: {', '.join(twice)}.")
    texts = {path: await _text(path, context) for path in paths}
    built = await asyncio.to_thread(build_patch, intents, texts)
    if isinstance(built, Refusal):
        return built
    changes = [
        change.model_copy(update={"path": names[change.path], "to": change.to and names[change.to]})
        for change in built.files
    ]
    return Patch(files=tuple(changes))


async def _whole(path: str, context: ToolContext) -> str | None:
    """The text of a file that is to be moved or deleted; None for one that is no text."""
    real = visible(context, path)
    if real.is_dir():
        raise refuse(f"{_name(path, context)} is a folder: move or delete its files one by one.")
    if not await context.workspace.exists(path):
        raise refuse(f"There is no file {_name(path, context)}.")
    try:
        return (await context.workspace.read(path)).text
    except DaikuError:
        return None


async def _move(args: MoveArgs, context: ToolContext) -> Patch | Refusal:
    name, to = _name(args.path, context), _name(args.to, context)
    text = await _whole(args.path, context)
    if name == to:
        return Refusal(f"{name} is already there.")
    if await context.workspace.exists(args.to):
        return Refusal(f"{name} cannot become {to}: there is such a file.")
    return Patch(files=(FileChange(path=name, kind="rename", old=text, new=text, to=to),))


async def _delete(args: DeleteArgs, context: ToolContext) -> Patch | Refusal:
    text = await _whole(args.path, context)
    return Patch(files=(FileChange(path=_name(args.path, context), kind="delete", old=text),))


async def carry_out(
    label: str, build: Callable[[], Awaitable[Patch | Refusal]], context: ToolContext
) -> ToolResult:
    """Build the patch, keep the files as they are, change them, tell of it. A file that moved on under
    the edit is read again, and the edit made anew for what it is now."""
    stale = ""
    for _ in range(TRIES):
        patch = await build()
        if isinstance(patch, Refusal):
            return failed(patch.text)
        touched = [path for change in patch.files for path in (change.path, change.to) if path]
        checkpoint = await context.checkpoints.take(context.session, context.run, touched)
        try:
            stats = await context.workspace.apply(patch, label)
        except StaleVersionError as error:
            stale = error.failure.message
            continue
        context.emit(Checkpointed(checkpoint_id=checkpoint, files=tuple(touched)))
        diff = await asyncio.to_thread(patch_diff, patch)
        context.emit(
            Edited(
                files=stats,
                checkpoint_id=checkpoint,
                call_id=context.call_id,
                diff=cut_middle(diff, _STORED_DIFF),
            )
        )
        return ToolResult(ok=True, text=_summary(stats, diff), data=_data(stats, checkpoint))
    return failed(f"{stale} It changed each of {TRIES} times: read it again, then edit.")


def _summary(stats: tuple[FileStat, ...], diff: str) -> str:
    verbs = {"create": "Made", "edit": "Changed", "delete": "Deleted", "rename": "Moved to"}
    lines = [f"{verbs[s.kind]} {s.path} (+{s.added} -{s.removed})" for s in stats]
    whole = any(s.kind in ("create", "delete") for s in stats)
    shown = "" if whole and len(stats) == 1 else cut_middle(diff, _SHOWN_DIFF, "files/read shows the file")
    return "\n".join([*lines, shown]).rstrip()


def _data(stats: tuple[FileStat, ...], checkpoint: str) -> dict[str, Any]:
    return {"files": [s.model_dump(by_alias=True) for s in stats], "checkpointId": checkpoint}


def _changing(name: str, args: type[Args], label: str, build: Build) -> Tool:
    async def run(values: Any, context: ToolContext) -> ToolResult:
        return await carry_out(label, lambda: build(values, context), context)

    async def preview(values: Any, context: ToolContext) -> Preview | ToolResult:
        patch = await build(values, context)
        if isinstance(patch, Refusal):
            return failed(patch.text)
        return Preview(
            text=await asyncio.to_thread(patch_diff, patch), remember="edits of files in this workspace"
        )

    return Tool(name, "edit", args, run, preview=preview, timeout=120)


CHANGING_TOOLS = (
    _changing("files/write", WriteArgs, "Write a file", _write),
    _changing("files/edit", EditArgs, "Edit a file", _edit),
    _changing("files/patch", PatchArgs, "Apply a patch", _patch),
    _changing("files/move", MoveArgs, "Move a file", _move),
    _changing("files/delete", DeleteArgs, "Delete a file", _delete),
)
FILE_TOOLS = (*READING_TOOLS, *CHANGING_TOOLS)
