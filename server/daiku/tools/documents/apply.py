"""The tool that applies a change map to a document: as one edit, with a checkpoint, shown like an edit of code (X.16)."""

from __future__ import annotations

import asyncio

from pydantic import Field

from daiku.core.changes.changemap import apply_map, patch_between
from daiku.core.changes.merge import merge_patches
from daiku.core.changes.redacted import unredacted
from daiku.core.guard.redact import MARK
from daiku.core.matching.refusal import AS_WANTED, Refusal
from daiku.domain.labels import Label
from daiku.domain.work.documents import Document
from daiku.domain.work.patches import Change, FileChange, Patch, PatchJSON
from daiku.texts.text import text
from daiku.tools.documents.desk import DocumentDesk
from daiku.tools.face import Face
from daiku.tools.files.changing import FileToolsState, changing_tool, named
from daiku.tools.files.syntax import OfferedEdits, RefusedCalls
from daiku.tools.tool import Args, Tool, ToolContext


class ApplyArgs(Args):
    """A change map of the document that the run works on, in code points of its text as it was read."""

    path: str = Field(description="the document")
    changes: tuple[Change, ...] = Field(min_length=1, description="sorted, without overlap")


def apply_tool(desk: DocumentDesk) -> Tool:
    """The tool `document/apply`."""

    async def build(args: ApplyArgs, context: ToolContext, _insisted: bool) -> Patch | Refusal:
        document = context.document
        if document is None or document.path != args.path:
            return Refusal("This run works on no such document.")
        name = named(args.path, context)
        if not await context.workspace.exists(args.path):
            if document.text:
                return Refusal(f"{name} is gone.")
            new = apply_map("", args.changes)
            return (
                new
                if isinstance(new, Refusal)
                else Patch(files=(FileChange(path=name, kind="create", new=new),))
            )
        old = (await context.workspace.read(args.path)).text
        new = await asyncio.to_thread(changed, old, desk.redact(old), document, args.changes)
        if isinstance(new, Refusal):
            return new.within(name)
        if new == old:
            return Refusal(f"{name}: {AS_WANTED}", as_wanted=True)
        return Patch(files=(FileChange(path=name, kind="edit", old=old, new=new),))

    return changing_tool(
        "document/apply",
        ApplyArgs,
        text("edits.document"),
        build,
        FileToolsState(OfferedEdits(), desk.seen, RefusedCalls()),
        face=Face("edit", Label("Revise", "文書を改訂"), "{path}"),
        description="Apply a change map to the document as one edit.",
        inner=True,
    )


def changed(old: str, shown: str, document: Document, changes: tuple[Change, ...]) -> str | Refusal:
    """`old`, the document as it stands, with `changes` of the text that was read made in it. `shown` is `old` with
    its secrets blacked out. What a person typed meanwhile stays: where a change overlaps it, the change goes."""
    ours = _as_patch(document.text, changes)
    if isinstance(ours, Refusal):
        return ours
    if shown != document.text:
        typed = patch_between(document.text, shown)
        merged = merge_patches(typed, ours)
        if len(merged.dropped) == len(changes):
            return Refusal("The document was changed meanwhile wherever it was to be revised. Start again.")
        ours = patch_between(shown, merged.new_text)
    real = unredacted(old, shown, MARK, ours.change_map)
    return real if isinstance(real, Refusal) else apply_map(old, real)


def _as_patch(base: str, changes: tuple[Change, ...]) -> PatchJSON | Refusal:
    new = apply_map(base, changes)
    return new if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=changes)
