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
from daiku.edits.rules.changes.choose import render_left_out, select_hunks
from daiku.edits.rules.changes.diff import render_patch
from daiku.edits.rules.changes.scope import is_inside
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.matching.refusal import AS_WANTED, SHOWS_LINES, Refusal
from daiku.edits.rules.patch import WholeFile, build_patch, list_paths, parse_patch, rewrite_text
from daiku.guard.rules.protected.effects import explain_patch_effects
from daiku.texts.rules.visible import restore_invisible
from daiku.texts.text import text
from daiku.tools.face import Face
from daiku.tools.files.make_edit import make_edit, to_editable, to_notebook_json
from daiku.tools.files.reading import build_reading_tools, describe_missing, suggest_files
from daiku.tools.files.seen import SeenTexts
from daiku.tools.files.sight import resolve_writable
from daiku.tools.files.syntax import OfferedEdits, RefusedCalls
from daiku.tools.rules.notebooks.celltext import to_cell_change
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure
from daiku.workspace.paths import refuse

MAX_ATTEMPTS = 3
"""Attempts to build an edit whose file keeps changing."""
EDIT_MOVED = (
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
    """What the file tools remember of each session."""

    offered: OfferedEdits
    seen_texts: SeenTexts
    insisted: RefusedCalls


Build = Callable[[Any, ToolContext, bool], Awaitable[Patch | Refusal]]
"""A function that builds a patch. Its last argument is true if the same call was refused before and is
repeated."""


async def _read_text(path: str, context: ToolContext) -> str | None:
    """Read the text of `path`; None if there is no file. Raises ToolValidationError."""
    resolve_writable(context, path)
    if not await context.workspace.exists(path):
        return None
    return to_editable(path, (await context.workspace.read(path)).text)


def resolve_name(path: str, context: ToolContext) -> str:
    """Return the workspace path of a file that may be changed.

    Raises ToolValidationError for a folder and for a path that is closed or outside.
    """
    if path.rstrip().endswith(("/", "\\")):
        raise refuse(text("files.names_folder", path=path))
    return context.workspace.relative(resolve_writable(context, path))


async def _build_write(
    seen_texts: SeenTexts, args: WriteArgs, context: ToolContext, insists: bool
) -> Patch | Refusal:
    name, old = resolve_name(args.path, context), await _read_text(args.path, context)
    if old is None:
        return Patch(files=(FileChange(path=name, kind="create", new=args.content),))
    new = rewrite_text(old, restore_invisible(args.content, old), path=name, insisted=insists)
    if isinstance(new, Refusal):
        return new.within(name)
    if new == old:
        return Refusal(f"{name}: {AS_WANTED}", as_wanted=True)
    if objection := seen_texts.check_overwrite(
        context.session, context.workspace.locate(args.path), name, old, new
    ):
        return objection
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _build_edit(args: EditArgs, context: ToolContext, insists: bool) -> Patch | Refusal:
    name, old = resolve_name(args.path, context), await _read_text(args.path, context)
    if old is None:
        if len(args.edits) == 1 and not args.edits[0].search:
            return Patch(files=(FileChange(path=name, kind="create", new=args.edits[0].replace),))
        missing = await asyncio.to_thread(describe_missing, context, context.workspace.locate(args.path))
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
    new = await asyncio.to_thread(apply_edits, old, edits, path=name, insisted=insists)
    if isinstance(new, Refusal):
        return new.within(name)
    return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))


async def _build_patch(
    seen_texts: SeenTexts, args: PatchArgs, context: ToolContext, insists: bool
) -> Patch | Refusal:
    intents = parse_patch(args.patch)
    if isinstance(intents, Refusal):
        return intents
    paths = list_paths(intents)
    names = {path: resolve_name(path, context) for path in paths}
    if len(set(names.values())) < len(paths):
        twice = sorted(path for path in paths if list(names.values()).count(names[path]) > 1)
        return Refusal(f"One file is named in several ways: {', '.join(twice)}.")
    texts = {path: await _read_text(path, context) for path in paths}
    restored_text = restore_invisible(args.patch, "\n".join(text for text in texts.values() if text))
    if restored_text != args.patch and not isinstance(real := parse_patch(restored_text), Refusal):
        intents = real
    for rewrite in (intent for intent in intents if isinstance(intent, WholeFile)):
        old, name = texts[rewrite.path], names[rewrite.path]
        real = context.workspace.locate(rewrite.path)
        if old is not None and (
            refusal := seen_texts.check_overwrite(context.session, real, name, old, rewrite.content)
        ):
            return refusal
    built = await asyncio.to_thread(build_patch, intents, texts, insisted=insists)
    if isinstance(built, Refusal):
        if not built.missing:
            return built
        real = context.workspace.locate(built.missing)
        suggestion = await asyncio.to_thread(suggest_files, context, real)
        return replace(built, text=f"{built.text} {suggestion}".rstrip())
    changes = [
        change.model_copy(update={"path": names[change.path], "to": change.to and names[change.to]})
        for change in built.files
    ]
    return Patch(files=tuple(changes))


async def _read_whole(path: str, context: ToolContext) -> str | None:
    """Read a file that is to be moved or deleted; None if it is not text."""
    real = resolve_writable(context, path)
    if real.is_dir():
        raise refuse(text("files.folder_one_by_one", path=resolve_name(path, context)))
    if not await context.workspace.exists(path):
        raise refuse(text("files.no_file", path=resolve_name(path, context)))
    try:
        return (await context.workspace.read(path)).text
    except DaikuError:
        return None


async def _build_move(args: MoveArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
    name, to = resolve_name(args.path, context), resolve_name(args.to, context)
    text = await _read_whole(args.path, context)
    if name == to:
        return Refusal(f"{name} is already there.")
    if await context.workspace.exists(args.to):
        return Refusal(f"{name} cannot become {to}: there is such a file.")
    return Patch(files=(FileChange(path=name, kind="rename", old=text, new=text, to=to),))


async def _build_delete(args: DeleteArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
    text = await _read_whole(args.path, context)
    return Patch(files=(FileChange(path=resolve_name(args.path, context), kind="delete", old=text),))


async def carry_out(
    label: str, build: Callable[[], Awaitable[Patch | Refusal]], context: ToolContext, state: FileToolsState
) -> ToolResult:
    """Build the patch, take a checkpoint, apply the patch, and report it.

    If a file changed meanwhile, the patch is built again from its new text.
    """
    stale = ""
    for _ in range(MAX_ATTEMPTS):
        try:
            patch = await _build_valid(build, context, state.offered)
            if isinstance(patch, Refusal):
                return _format_refusal(patch)
            if context.place is not None and not is_inside(patch, context.place):
                return build_failure(EDIT_MOVED)
            if not context.consented and (reason := await asyncio.to_thread(explain_patch_effects, patch)):
                return build_failure(
                    f"Not done: {reason}. This needs the approval of the user: make the edit again."
                )
            if context.wanted is None:
                return await make_edit(label, patch, context, state.seen_texts)
            part = select_hunks(patch, context.wanted)
            if isinstance(part, Refusal):
                return build_failure(part.text)
            result = await make_edit(label, part.patch, context, state.seen_texts)
            notices = (result.text, render_left_out(part, context.wanted))
            return result.model_copy(update={"text": "\n\n".join(text for text in notices if text)})
        except StaleVersionError as error:
            stale = error.failure.message
    return build_failure(f"{stale} It changed each of {MAX_ATTEMPTS} times: read it again, then edit.")


def _format_refusal(refusal: Refusal) -> ToolResult:
    """Return the result of a refused edit: a success if the files are already as requested."""
    if refusal.as_wanted:
        return ToolResult(ok=True, text=refusal.text, data={"files": []})
    return ToolResult(ok=False, text=refusal.text, data={SHOWS_LINES: True} if refusal.shows_lines else None)


async def _build_valid(
    build: Callable[[], Awaitable[Patch | Refusal]], context: ToolContext, offered: OfferedEdits
) -> Patch | Refusal:
    """Build the patch; refuse it if it breaks the syntax of a file. Raises StaleVersionError."""
    built = await build()
    patch = built if isinstance(built, Refusal) else await to_notebook_json(built, context)
    if isinstance(patch, Refusal):
        return patch
    flaws = await asyncio.to_thread(offered.find_new_flaws, patch, context.session)
    return Refusal(flaws) if flaws else patch


def build_changing_tool(
    name: str,
    args: type[Args],
    label: str,
    build: Build,
    state: FileToolsState,
    *,
    face: Face,
    description: str,
    inner: bool = False,
) -> Tool:
    """Build a tool that applies the patch of `build`, with a diff as preview and a checkpoint."""

    async def build_patch_for(values: Any, context: ToolContext) -> Patch | Refusal:
        key = f"{context.session} {name} {values.model_dump_json()}"
        patch = await build(values, context, state.insisted.was_refused(key))
        if isinstance(patch, Refusal) and patch.may_insist:
            state.insisted.note(key)
        return patch

    async def run(values: Any, context: ToolContext) -> ToolResult:
        return await carry_out(label, lambda: build_patch_for(values, context), context, state)

    async def preview(values: Any, context: ToolContext) -> Preview | ToolResult:
        patch = await _build_valid(lambda: build_patch_for(values, context), context, state.offered)
        if isinstance(patch, Refusal):
            return _format_refusal(patch)
        diff = await asyncio.to_thread(
            lambda: render_patch(Patch(files=tuple(map(to_cell_change, patch.files))))
        )
        return Preview(text=diff, remember=text("guard.remember_edits"), patch=patch)

    return Tool(
        name, "edit", args, run, preview=preview, timeout=120, face=face, description=description, inner=inner
    )


def build_file_tools(seen_texts: SeenTexts | None = None) -> tuple[Tool, ...]:
    """Return the file tools; `seen_texts` records the texts that the model has read."""
    state = FileToolsState(OfferedEdits(), seen_texts or SeenTexts(), RefusedCalls())
    return (
        *build_reading_tools(state.seen_texts),
        build_changing_tool(
            "files/write", WriteArgs, text("edits.write"), partial(_build_write, state.seen_texts), state,
            face=Face("new-file", Label("Write", "書き込み"), "{path}"),
            description="Make a new file, or replace a whole file.",
        ),
        build_changing_tool(
            "files/edit", EditArgs, text("edits.edit"), _build_edit, state,
            face=Face("edit", Label("Edit", "編集"), "{path}"),
            description="Replace parts of one file, all of them or none.",
        ),
        build_changing_tool(
            "files/patch", PatchArgs, text("edits.patch"), partial(_build_patch, state.seen_texts), state,
            face=Face("diff", Label("Patch", "パッチ"), "{files}"),
            description="Change, make, move or delete several files at once, all or none: *** Begin Patch, then for each file *** Add File: / *** Update File: (with optional *** Move to:) / *** Delete File: PATH, hunks under @@ with lines that begin with a blank, - or +, then *** End Patch. Give three lines of context around each change.",
        ),
        build_changing_tool(
            "files/move", MoveArgs, text("edits.move"), _build_move, state,
            face=Face("arrow-swap", Label("Move", "移動"), "{path} → {to}"),
            description="Move or rename a file. An existing file is never replaced.",
        ),
        build_changing_tool(
            "files/delete", DeleteArgs, text("edits.delete"), _build_delete, state,
            face=Face("trash", Label("Delete", "削除"), "{path}"),
            description="Delete a file. It can be brought back with undo.",
        ),
    )  # fmt: skip
