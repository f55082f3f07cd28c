"""Tools files/read and files/list."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from daiku.domain.labels import Label
from daiku.domain.tools import ToolImage, ToolResult
from daiku.guard.rules.referenced_paths import is_kept_output
from daiku.run.rules.calls.toolnames import nearest_names
from daiku.texts.rules.pictures import PICTURES
from daiku.texts.rules.truncate import OUTPUT_LIMIT
from daiku.tools.face import Face
from daiku.tools.files.make_edit import to_editable
from daiku.tools.files.seen import SeenTexts
from daiku.tools.files.sight import VisiblePath, read_text, resolve_visible
from daiku.tools.tool import Args, Tool, ToolContext, build_failure
from daiku.workspace.diskio import read_bytes
from daiku.workspace.globs import build_matcher, split_globs
from daiku.workspace.outputs import find_dependency_folder
from daiku.workspace.walk import walk, walk_files

MAX_LINES = 2000
"""Lines in an answer."""
MAX_ENTRIES = 500
"""Files and folders in an answer."""
_LARGEST_IMAGE = 50_000_000
"""Bytes of the largest image."""
_LONG_LINE = 2000
"""Characters of a line that are shown."""
CELLS_NOTE = (
    "A notebook is edited as it is shown here; a new cell begins with `# %% cell new [code]` or `[markdown]`."
)


class ReadArgs(Args):
    path: str = Field(description="in the workspace")
    start_line: int | None = Field(default=None, ge=1, description="from 1")
    end_line: int | None = Field(default=None, ge=1, description="the last line")
    line_numbers: SkipJsonSchema[bool] = True


class ListArgs(Args):
    path: str = Field(default=".", description="folder; else the workspace")
    depth: int | None = Field(default=None, ge=1, le=50, description="levels of folders; else 2")
    glob: str | None = Field(default=None, description="at any depth: src/**/*.ts")


async def read(seen_texts: SeenTexts, args: ReadArgs, context: ToolContext) -> ToolResult:
    """Read a file's lines with their numbers, a picture, or the stored output of a command."""
    if is_kept_output(args.path):
        return await asyncio.to_thread(_read_output, args, context)
    visible = resolve_visible(context, args.path)
    real = visible.real
    exists = real.exists() if visible.folder else await context.workspace.exists(args.path)
    if not exists:
        return build_failure(await asyncio.to_thread(describe_missing, context, real))
    if real.is_dir():
        return await list_files(ListArgs(path=args.path), context)
    if real.suffix.lower() in PICTURES:
        return await asyncio.to_thread(_read_picture, context, real)
    file = await read_text(visible, args.path, context)
    text = to_editable(file.path, file.text)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        seen_texts.note(context.session, real, text)
        return ToolResult(ok=True, text=f"{file.path} is empty.", plain=text)
    first, last = args.start_line or 1, min(args.end_line or len(lines), len(lines))
    if first > len(lines) or last < first:
        return build_failure(
            f"{file.path} has {len(lines)} lines; {first} to {args.end_line or 'the end'} are none of them."
        )
    end, listing = _format_lines(file.path, lines, first, last, numbers=args.line_numbers)
    seen_texts.note_part(context.session, real, text, range(first, end + 1), len(lines))
    part = text if last - first + 1 == len(lines) else "\n".join([*lines[first - 1 : last], ""])
    notes = (visible.note, CELLS_NOTE if text != file.text else "")
    return ToolResult(
        ok=True, text="\n".join([listing, *(f"[{note}]" for note in notes if note)]), plain=part
    )


def _format_lines(path: str, lines: list[str], first: int, last: int, *, numbers: bool) -> tuple[int, str]:
    """Return the number of the last line that fits, and the formatted lines."""
    width = len(str(last))
    listing: list[str] = []
    size = 0
    for number in range(first, last + 1):
        line = lines[number - 1].removesuffix("\r")
        if len(line) > _LONG_LINE:
            line = f"{line[:_LONG_LINE]} [… {len(line) - _LONG_LINE} more characters in this line]"
        line = f"{number:>{width}} | {line}" if numbers else line
        size += len(line) + 1
        if listing and (size > OUTPUT_LIMIT - 500 or len(listing) >= MAX_LINES):
            break
        listing.append(line)
    end = first + len(listing) - 1
    if first == 1 and end == len(lines):
        return end, "\n".join(listing)
    head = f"{path}, lines {first} to {end} of {len(lines)}"
    tail = f"\n[Go on with start_line={end + 1}]" if end < last else ""
    return end, f"{head}\n" + "\n".join(listing) + tail


def _read_output(args: ReadArgs, context: ToolContext) -> ToolResult:
    text = context.outputs.read(context.session, args.path) if context.outputs is not None else None
    if text is None:
        return build_failure(f"There is no {args.path} here, or no longer. Run the command again.")
    lines = text.removesuffix("\n").split("\n")
    first, last = args.start_line or 1, min(args.end_line or len(lines), len(lines))
    if first > len(lines) or last < first:
        return build_failure(f"{args.path} has {len(lines)} lines.")
    return ToolResult(
        ok=True, text=_format_lines(args.path, lines, first, last, numbers=args.line_numbers)[1], plain=text
    )


def describe_missing(context: ToolContext, real: Path) -> str:
    """Say that there is no file at `real`, and suggest similar names."""
    return f"There is no file {context.workspace.relative(real)}. {suggest_files(context, real)}".rstrip()


def suggest_files(context: ToolContext, real: Path) -> str:
    """Suggest existing files: those of the same name in other folders, else those of a similar path.

    Empty if there are none.
    """
    name = context.workspace.relative(real)
    paths = [context.workspace.relative(p) for p in islice(walk_files(context.workspace.roots), 20_000)]
    same_name = [path for path in paths if path.rpartition("/")[2] == real.name]
    suggestions = same_name[:3] or nearest_names(name, paths)
    return f"The nearest are {', '.join(suggestions)}." if suggestions else ""


def _read_picture(context: ToolContext, real: Path) -> ToolResult:
    from daiku.models.history.pictures import fit_picture  # when used

    name = context.workspace.relative(real)
    folder = find_dependency_folder(context.workspace.roots, real)
    roots = (*context.workspace.roots, folder) if folder else context.workspace.roots
    data = read_bytes(roots, real, name, _LARGEST_IMAGE)
    picture = fit_picture(base64.b64encode(data).decode())
    if picture.problem:
        return build_failure(f"{name} is not shown: {picture.problem}.")
    image = ToolImage(media_type=picture.media_type, data=picture.data)
    text = f"{name}: a picture, {len(data):,} bytes. {picture.note}".rstrip()
    return ToolResult(ok=True, text=text, images=(image,))


async def list_files(args: ListArgs, context: ToolContext) -> ToolResult:
    """List the files under a folder that the agent may see."""
    roots = context.workspace.roots
    is_workspace = args.path.strip() in ("", ".", "./", "/")
    visible = VisiblePath(roots[0]) if is_workspace and roots else resolve_visible(context, args.path)
    start = None if is_workspace and len(roots) > 1 else visible.real
    if start is not None and not start.is_dir():
        return build_failure(
            f"{args.path} is a file: read it with files__read."
            if start.exists()
            else describe_missing(context, start)
        )
    listing = await asyncio.to_thread(_list_tree, args, context, roots if start is None else (start,))
    return (
        listing.model_copy(update={"text": f"{listing.text}\n[{visible.note}]"}) if visible.note else listing
    )


def _list_tree(args: ListArgs, context: ToolContext, starts: Iterable[Path]) -> ToolResult:
    matches = build_matcher(split_globs(args.glob)) if args.glob else None
    depth = args.depth or (50 if matches else 2)
    lines: list[str] = []
    omitted = 0
    for start in starts:
        for entry in walk(context.workspace.roots, start, depth):
            inside = entry.path.relative_to(start).as_posix()
            if matches is not None and (entry.folder or not matches(inside)):
                continue
            if len(lines) >= MAX_ENTRIES:
                omitted += 1
                continue
            name = context.workspace.relative(entry.path)
            lines.append(f"{name}/" if entry.folder else name)
    if not lines:
        return ToolResult(ok=True, text="No files." if matches is None else f"No file matches {args.glob}.")
    if omitted:
        lines.append(f"[… {omitted} more; give a subfolder as path, a smaller depth or a glob …]")
    return ToolResult(ok=True, text="\n".join(lines))


def build_reading_tools(seen_texts: SeenTexts) -> tuple[Tool, ...]:
    """Build the tools that read; `seen_texts` records what was read."""
    return (
        Tool(
            "files/read", "read", ReadArgs, partial(read, seen_texts), parallel=True, timeout=60,
            face=Face("file", Label("Read", "読む"), "{path}{lines}", answer="size"),
            description="Read a file (unsaved text too) with line numbers, a picture, a notebook as cells.",
        ),
        Tool(
            "files/list", "read", ListArgs, list_files, parallel=True, timeout=60,
            face=Face("list-tree", Label("List", "一覧"), "{path|glob|.}", answer="size"),
            description="List files and folders, what git ignores only if `path` lies in it.",
        ),
    )  # fmt: skip
