"""Tools that look: files/read and files/list."""

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
from daiku.tools.files.notebooks import editable
from daiku.tools.files.seen import SeenTexts
from daiku.tools.files.sight import Sight, read_text, see
from daiku.tools.tool import Args, Tool, ToolContext, failed
from daiku.workspace.dependencies import dependency_folder
from daiku.workspace.diskio import read_bytes
from daiku.workspace.globs import matcher, split_globs
from daiku.workspace.walk import files, walk

MAX_LINES = 2000
MAX_ENTRIES = 500
_LARGEST_IMAGE = 50_000_000
_LONG_LINE = 2000
CELLS = (
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


async def read(seen: SeenTexts, args: ReadArgs, context: ToolContext) -> ToolResult:
    """A file's lines with their numbers, or a picture; also of what a command printed."""
    if is_kept_output(args.path):
        return await asyncio.to_thread(_read_output, args, context)
    sight = see(context, args.path)
    real = sight.real
    there = real.exists() if sight.folder else await context.workspace.exists(args.path)
    if not there:
        return failed(await asyncio.to_thread(no_such_file, context, real))
    if real.is_dir():
        return await list_files(ListArgs(path=args.path), context)
    if real.suffix.lower() in PICTURES:
        return await asyncio.to_thread(_picture, context, real)
    found = await read_text(sight, args.path, context)
    text = editable(found.path, found.text)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        seen.note(context.session, real, text)
        return ToolResult(ok=True, text=f"{found.path} is empty.", plain=text)
    first, last = args.start_line or 1, min(args.end_line or len(lines), len(lines))
    if first > len(lines) or last < first:
        return failed(
            f"{found.path} has {len(lines)} lines; {first} to {args.end_line or 'the end'} are none of them."
        )
    end, shown = _listing(found.path, lines, first, last, numbers=args.line_numbers)
    seen.note_part(context.session, real, text, range(first, end + 1), len(lines))
    part = text if last - first + 1 == len(lines) else "\n".join([*lines[first - 1 : last], ""])
    notes = (sight.note, CELLS if text != found.text else "")
    return ToolResult(ok=True, text="\n".join([shown, *(f"[{note}]" for note in notes if note)]), plain=part)


def _listing(path: str, lines: list[str], first: int, last: int, *, numbers: bool) -> tuple[int, str]:
    """The last line that there is room for, and the text."""
    width = len(str(last))
    shown: list[str] = []
    size = 0
    for number in range(first, last + 1):
        line = lines[number - 1].removesuffix("\r")
        if len(line) > _LONG_LINE:
            line = f"{line[:_LONG_LINE]} [… {len(line) - _LONG_LINE} more characters in this line]"
        line = f"{number:>{width}} | {line}" if numbers else line
        size += len(line) + 1
        if shown and (size > OUTPUT_LIMIT - 500 or len(shown) >= MAX_LINES):
            break
        shown.append(line)
    end = first + len(shown) - 1
    if first == 1 and end == len(lines):
        return end, "\n".join(shown)
    head = f"{path}, lines {first} to {end} of {len(lines)}"
    tail = f"\n[Go on with start_line={end + 1}]" if end < last else ""
    return end, f"{head}\n" + "\n".join(shown) + tail


def _read_output(args: ReadArgs, context: ToolContext) -> ToolResult:
    text = context.outputs.read(context.session, args.path) if context.outputs is not None else None
    if text is None:
        return failed(f"There is no {args.path} here, or no longer. Run the command again.")
    lines = text.removesuffix("\n").split("\n")
    first, last = args.start_line or 1, min(args.end_line or len(lines), len(lines))
    if first > len(lines) or last < first:
        return failed(f"{args.path} has {len(lines)} lines.")
    return ToolResult(
        ok=True, text=_listing(args.path, lines, first, last, numbers=args.line_numbers)[1], plain=text
    )


def no_such_file(context: ToolContext, real: Path) -> str:
    """That there is no file at `real`, and which names are most like its name."""
    return f"There is no file {context.workspace.relative(real)}. {nearest_files(context, real)}".rstrip()


def nearest_files(context: ToolContext, real: Path) -> str:
    """A sentence with the files that are named most like `real`: those of the same name in other folders, else
    those of a similar path; empty where there are none."""
    name = context.workspace.relative(real)
    known = [context.workspace.relative(p) for p in islice(files(context.workspace.roots), 20_000)]
    same = [path for path in known if path.rpartition("/")[2] == real.name]
    near = same[:3] or nearest_names(name, known)
    return f"The nearest are {', '.join(near)}." if near else ""


def _picture(context: ToolContext, real: Path) -> ToolResult:
    from daiku.models.history.pictures import fit_picture  # when used

    name = context.workspace.relative(real)
    folder = dependency_folder(context.workspace.roots, real)
    roots = (*context.workspace.roots, folder) if folder else context.workspace.roots
    data = read_bytes(roots, real, name, _LARGEST_IMAGE)
    fitted = fit_picture(base64.b64encode(data).decode())
    if fitted.problem:
        return failed(f"{name} is not shown: {fitted.problem}.")
    image = ToolImage(media_type=fitted.media_type, data=fitted.data)
    text = f"{name}: a picture, {len(data):,} bytes. {fitted.note}".rstrip()
    return ToolResult(ok=True, text=text, images=(image,))


async def list_files(args: ListArgs, context: ToolContext) -> ToolResult:
    """The files under a folder that the agent may see."""
    roots = context.workspace.roots
    whole = args.path.strip() in ("", ".", "./", "/")
    sight = Sight(roots[0]) if whole and roots else see(context, args.path)
    start = None if whole and len(roots) > 1 else sight.real
    if start is not None and not start.is_dir():
        return failed(
            f"{args.path} is a file: read it with files__read."
            if start.exists()
            else no_such_file(context, start)
        )
    found = await asyncio.to_thread(_tree, args, context, roots if start is None else (start,))
    return found.model_copy(update={"text": f"{found.text}\n[{sight.note}]"}) if sight.note else found


def _tree(args: ListArgs, context: ToolContext, starts: Iterable[Path]) -> ToolResult:
    matches = matcher(split_globs(args.glob)) if args.glob else None
    depth = args.depth or (50 if matches else 2)
    lines: list[str] = []
    left = 0
    for start in starts:
        for entry in walk(context.workspace.roots, start, depth):
            inside = entry.path.relative_to(start).as_posix()
            if matches is not None and (entry.folder or not matches(inside)):
                continue
            if len(lines) >= MAX_ENTRIES:
                left += 1
                continue
            name = context.workspace.relative(entry.path)
            lines.append(f"{name}/" if entry.folder else name)
    if not lines:
        return ToolResult(ok=True, text="No files." if matches is None else f"No file matches {args.glob}.")
    if left:
        lines.append(f"[… {left} more; give a subfolder as path, a smaller depth or a glob …]")
    return ToolResult(ok=True, text="\n".join(lines))


def reading_tools(seen: SeenTexts) -> tuple[Tool, ...]:
    """The tools that look; what was read is noted in `seen`."""
    return (
        Tool(
            "files/read", "read", ReadArgs, partial(read, seen), parallel=True, timeout=60,
            face=Face("file", Label("Read", "読む"), "{path}{lines}", answer="size"),
            description="Read a file (unsaved text too) with line numbers, a picture, a notebook as cells.",
        ),
        Tool(
            "files/list", "read", ListArgs, list_files, parallel=True, timeout=60,
            face=Face("list-tree", Label("List", "一覧"), "{path|glob|.}", answer="size"),
            description="List files and folders, what git ignores only if `path` lies in it.",
        ),
    )  # fmt: skip
