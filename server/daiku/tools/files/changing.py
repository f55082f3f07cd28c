"""Tools that change files: files/write, files/edit, files/patch, files/move, files/delete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from pydantic import Field

from daiku.dataclass import dataclass, replace
from daiku.domain.errors import DaikuError, StaleVersionError
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.domain.work.patches import FileChange, Patch, SearchReplace
from daiku.edits.rules.changes.choose import left_out_text, part_of
from daiku.edits.rules.changes.diff import patch_diff
from daiku.edits.rules.changes.scope import is_inside
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.matching.refusal import AS_WANTED, SHOWS_LINES, Refusal
from daiku.edits.rules.patch import WholeFile, build_patch, parse_patch, paths_of, rewrite_text
from daiku.guard.rules.protected.effects import why_patch_matters
from daiku.texts.rules.visible import restore_invisible
from daiku.texts.text import text
from daiku.tools.face import Face
from daiku.tools.files.make_edit import make_edit
from daiku.tools.files.notebooks import editable, to_notebook_json
from daiku.tools.files.reading import nearest_files, no_such_file, reading_tools
from daiku.tools.files.seen import SeenTexts
from daiku.tools.files.sight import changeable
from daiku.tools.files.syntax import OfferedEdits, RefusedCalls
from daiku.tools.rules.notebooks.celltext import with_cell_texts
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed
from daiku.workspace.paths import refuse

TRIES = 3
"""How often an edit is made anew when the file moved on under it."""
ELSEWHERE = (
    "The file changed meanwhile: the edit would no longer stay at the place it was asked for. Make it anew."
)


class WriteArgs(Args):
    path: str = Field(description="in the workspace")
    content: str = Field(description="its whole text")


class EditArgs(Args):
    path: str = Field(description="in the workspace")
    edits: tuple[SearchReplace, ...] = Field(min_length=1, description="in this order")


class PatchArgs(Args):
    patch: str = Field(description="apply-patch or unified diff")


class MoveArgs(Args):
    path: str = Field(description="in the workspace")
    to: str = Field(description="new path; missing folders are made")


class DeleteArgs(Args):
    path: str = Field(description="in the workspace")


@dataclass(frozen=True, slots=True)
class FileToolsState:
    """What these tools remember of each session."""

    offered: OfferedEdits
    seen: SeenTexts
    insisted: RefusedCalls


Build = Callable[[Any, ToolContext, bool], Awaitable[Patch | Refusal]]
"""The last argument: these very arguments were refused before and come again, so they are meant as they stand."""


async def _text(path: str, context: ToolContext) -> str | None:
    """The text of `path`, None where there is no file. Raises ToolValidationError."""
    changeable(context, path)
    if not await context.workspace.exists(path):
        return None
    return editable(path, (await context.workspace.read(path)).text)


def named(path: str, context: ToolContext) -> str:
    """The name of a file that may be changed. Raises ToolValidationError: a folder, closed, or outside."""
    if path.rstrip().endswith(("/", "\\")):
        raise refuse(text("files.names_folder", path=path))
    return context.workspace.relative(changeable(context, path))


async def _write(seen: SeenTexts, args: WriteArgs, context: ToolContext, insisted: bool) -> Patch | Refusal:
    name, old = named(args.path, context), await _text(args.path, context)
    if old is None:
        return Patch(files=(FileChange(path=name, kind="create", new=args.content),))
    new = rewrite_text(old, restore_invisible(args.content, old), path=name, insisted=insisted)
    if isinstance(new, Refusal):
        return new.within(name)
    if new == old:
        return Refusal(f"{name}: {AS_WANTED}", as_wanted=True)
    if objection := seen.objection(context.session, context.workspace.locate(args.path), name, old, new):
        return objection
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _edit(args: EditArgs, context: ToolContext, insisted: bool) -> Patch | Refusal:
    name, old = named(args.path, context), await _text(args.path, context)
    if old is None:
        if len(args.edits) == 1 and not args.edits[0].search:
            return Patch(files=(FileChange(path=name, kind="create", new=args.edits[0].replace),))
        missing = await asyncio.to_thread(no_such_file, context, context.workspace.locate(args.path))
        return Refusal(f"{missing} A new file is made with files__write.")
    edits = [
        edit.model_copy(
            update={
                "search": restore_invisible(edit.search, old),
                "replace": restore_invisible(edit.replace, old),
            }
        )
        for edit in args.edits
    ]
    new = await asyncio.to_thread(apply_edits, old, edits, path=name, insisted=insisted)
    if isinstance(new, Refusal):
        return new.within(name)
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _patch(seen: SeenTexts, args: PatchArgs, context: ToolContext, insisted: bool) -> Patch | Refusal:
    intents = parse_patch(args.patch)
    if isinstance(intents, Refusal):
        return intents
    paths = paths_of(intents)
    names = {path: named(path, context) for path in paths}
    if len(set(names.values())) < len(paths):
        twice = sorted(path for path in paths if list(names.values()).count(names[path]) > 1)
        return Refusal(f"One file is named in several ways: {', '.join(twice)}.")
    texts = {path: await _text(path, context) for path in paths}
    written = restore_invisible(args.patch, "\n".join(text for text in texts.values() if text))
    if written != args.patch and not isinstance(real := parse_patch(written), Refusal):
        intents = real
    for whole in (intent for intent in intents if isinstance(intent, WholeFile)):
        old, name = texts[whole.path], names[whole.path]
        real = context.workspace.locate(whole.path)
        if old is not None and (why := seen.objection(context.session, real, name, old, whole.content)):
            return why
    built = await asyncio.to_thread(build_patch, intents, texts, insisted=insisted)
    if isinstance(built, Refusal):
        if not built.missing:
            return built
        real = context.workspace.locate(built.missing)
        near = await asyncio.to_thread(nearest_files, context, real)
        return replace(built, text=f"{built.text} {near}".rstrip())
    changes = [
        change.model_copy(update={"path": names[change.path], "to": change.to and names[change.to]})
        for change in built.files
    ]
    return Patch(files=tuple(changes))


async def _whole(path: str, context: ToolContext) -> str | None:
    """The text of a file that is to be moved or deleted; None for one that is no text."""
    real = changeable(context, path)
    if real.is_dir():
        raise refuse(text("files.folder_one_by_one", path=named(path, context)))
    if not await context.workspace.exists(path):
        raise refuse(text("files.no_file", path=named(path, context)))
    try:
        return (await context.workspace.read(path)).text
    except DaikuError:
        return None


async def _move(args: MoveArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
    name, to = named(args.path, context), named(args.to, context)
    text = await _whole(args.path, context)
    if name == to:
        return Refusal(f"{name} is already there.")
    if await context.workspace.exists(args.to):
        return Refusal(f"{name} cannot become {to}: there is such a file.")
    return Patch(files=(FileChange(path=name, kind="rename", old=text, new=text, to=to),))


async def _delete(args: DeleteArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
    text = await _whole(args.path, context)
    return Patch(files=(FileChange(path=named(args.path, context), kind="delete", old=text),))


async def carry_out(
    label: str, build: Callable[[], Awaitable[Patch | Refusal]], context: ToolContext, desk: FileToolsState
) -> ToolResult:
    """Build the patch, take a checkpoint, apply the patch and report it. If a file changed meanwhile, the
    patch is built again from its new text."""
    stale = ""
    for _ in range(TRIES):
        try:
            patch = await _offer(build, context, desk.offered)
            if isinstance(patch, Refusal):
                return _nothing_done(patch)
            if context.place is not None and not is_inside(patch, context.place):
                return failed(ELSEWHERE)
            if not context.consented and (why := await asyncio.to_thread(why_patch_matters, patch)):
                return failed(f"Not done: {why}. This needs the approval of the user: make the edit again.")
            if context.wanted is None:
                return await make_edit(label, patch, context, desk.seen)
            part = part_of(patch, context.wanted)
            if isinstance(part, Refusal):
                return failed(part.text)
            done = await make_edit(label, part.patch, context, desk.seen)
            told_of = (done.text, left_out_text(part, context.wanted))
            return done.model_copy(update={"text": "\n\n".join(text for text in told_of if text)})
        except StaleVersionError as error:
            stale = error.failure.message
    return failed(f"{stale} It changed each of {TRIES} times: read it again, then edit.")


def _nothing_done(refusal: Refusal) -> ToolResult:
    """That nothing was changed: a success where the files are as wanted already. There is no checkpoint."""
    if refusal.as_wanted:
        return ToolResult(ok=True, text=refusal.text, data={"files": []})
    return ToolResult(ok=False, text=refusal.text, data={SHOWS_LINES: True} if refusal.shows_lines else None)


async def _offer(
    build: Callable[[], Awaitable[Patch | Refusal]], context: ToolContext, offered: OfferedEdits
) -> Patch | Refusal:
    """The patch, unless it breaks a file that parsed. Raises StaleVersionError."""
    built = await build()
    patch = built if isinstance(built, Refusal) else await to_notebook_json(built, context)
    if isinstance(patch, Refusal):
        return patch
    objection = await asyncio.to_thread(offered.objection, patch, context.session)
    return Refusal(objection) if objection else patch


def changing_tool(
    name: str,
    args: type[Args],
    label: str,
    build: Build,
    desk: FileToolsState,
    *,
    face: Face,
    description: str,
    inner: bool = False,
) -> Tool:
    """A tool that changes files by the patch that `build` makes: previewed as a diff, with a checkpoint before it."""

    async def made(values: Any, context: ToolContext) -> Patch | Refusal:
        key = f"{context.session} {name} {values.model_dump_json()}"
        patch = await build(values, context, desk.insisted.before(key))
        if isinstance(patch, Refusal) and patch.may_insist:
            desk.insisted.note(key)
        return patch

    async def run(values: Any, context: ToolContext) -> ToolResult:
        return await carry_out(label, lambda: made(values, context), context, desk)

    async def preview(values: Any, context: ToolContext) -> Preview | ToolResult:
        patch = await _offer(lambda: made(values, context), context, desk.offered)
        if isinstance(patch, Refusal):
            return _nothing_done(patch)
        diff = await asyncio.to_thread(
            lambda: patch_diff(Patch(files=tuple(map(with_cell_texts, patch.files))))
        )
        return Preview(text=diff, remember=text("guard.remember_edits"), patch=patch)

    return Tool(
        name, "edit", args, run, preview=preview, timeout=120, face=face, description=description, inner=inner
    )


def file_tools(seen: SeenTexts | None = None) -> tuple[Tool, ...]:
    """Return the file tools; `seen` records the texts that the model has read."""
    desk = FileToolsState(OfferedEdits(), seen or SeenTexts(), RefusedCalls())
    return (
        *reading_tools(desk.seen),
        changing_tool(
            "files/write", WriteArgs, text("edits.write"), partial(_write, desk.seen), desk,
            face=Face("new-file", Label("Write", "書き込み"), "{path}"),
            description="Make a new file, or replace a whole file.",
        ),
        changing_tool(
            "files/edit", EditArgs, text("edits.edit"), _edit, desk,
            face=Face("edit", Label("Edit", "編集"), "{path}"),
            description="Replace parts of one file, all of them or none.",
        ),
        changing_tool(
            "files/patch", PatchArgs, text("edits.patch"), partial(_patch, desk.seen), desk,
            face=Face("diff", Label("Patch", "パッチ"), "{files}"),
            description="Change, make, move or delete several files at once, all or none: *** Begin Patch, then for each file *** Add File: / *** Update File: (with optional *** Move to:) / *** Delete File: PATH, hunks under @@ with lines that begin with a blank, - or +, then *** End Patch. Give three lines of context around each change.",
        ),
        changing_tool(
            "files/move", MoveArgs, text("edits.move"), _move, desk,
            face=Face("arrow-swap", Label("Move", "移動"), "{path} → {to}"),
            description="Move or rename a file. An existing file is never replaced.",
        ),
        changing_tool(
            "files/delete", DeleteArgs, text("edits.delete"), _delete, desk,
            face=Face("trash", Label("Delete", "削除"), "{path}"),
            description="Delete a file. It can be brought back with undo.",
        ),
    )  # fmt: skip
