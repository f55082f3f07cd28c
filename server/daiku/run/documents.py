"""The request to revise a document: its text as it stands in the editor or on disk, and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import Range
from daiku.domain.work.documents import Document, KeptEvaluation, Rubric
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.positions import Encoding, line_starts, offset_of
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Workspace
from daiku.team.rules.drafting.headings import format_of, is_prose
from daiku.team.rules.drafting.reflection import evidence_of
from daiku.texts.text import text

AGENT = "document"
RUBRIC = ".daiku/rubric.json"
LESSONS = ".daiku/lessons.md"
_UNTITLED = "untitled:"
MOST_LESSONS = 4_000
"""Characters of the lessons that a draft is told."""


def is_untitled(uri: str) -> bool:
    """Whether an editor's document is no file yet. As a path it would be a new file of this name."""
    return uri.startswith(_UNTITLED)


async def reflection_request(workspace: Workspace, kept: Sequence[KeptEvaluation]) -> RunRequest:
    """The request for lessons from `kept`, all judgements of finished work (R1.67). Raises ToolValidationError."""
    document = Document(
        path=LESSONS, form="markdown", text=await _content(workspace, LESSONS), passages=evidence_of(kept)
    )
    asked = text("document.reflect")
    return RunRequest(asked, agent="reflection", brief=Brief(request=asked, document=document))


async def document_request(
    workspace: Workspace,
    uri: str,
    instruction: str,
    *,
    depth: int = 1,
    selection: Range | None = None,
    encoding: Encoding = "utf-16",
    trusted: bool = True,
) -> RunRequest:
    """Return the request to revise the document `uri` (a path or file URI), of a `selection` only that.

    Rubric and lessons count if the workspace is `trusted`. Raises ToolValidationError, UsageError."""
    if is_untitled(uri):
        name = uri.removeprefix(_UNTITLED)
        raise UsageError(Failure(kind="usage", message=text("document.untitled", name=name)))
    path = workspace.relative(workspace.locate(uri))
    if path.lower().endswith(".ipynb"):
        raise UsageError(Failure(kind="usage", message=text("document.notebook", path=path)))
    there = await workspace.exists(uri)
    content = (await workspace.read(uri)).text if there else ""
    document = Document(
        path=path,
        form=format_of(path),
        text=content,
        depth=depth,
        selection=None if selection is None else _offsets(content, selection, encoding),
        rubric=await _rubric(workspace) if trusted else None,
        lessons=await _lessons(workspace) if trusted else "",
    )
    return RunRequest(instruction, agent=AGENT, brief=Brief(request=instruction, document=document))


async def brief_of_context(workspace: Workspace, request: RunRequest, *, trusted: bool) -> Brief | None:
    """Return the brief for the first document in a request's context, if any. Raises as `document_request`."""
    for item in request.context:
        uri = item.uri or ""
        if item.kind in ("file", "selection") and is_prose(uri) and not is_untitled(uri):
            selection = item.range if item.kind == "selection" else None
            made = await document_request(workspace, uri, request.text, selection=selection, trusted=trusted)
            return made.brief
    return None


def _offsets(content: str, selection: Range, encoding: Encoding) -> tuple[int, int]:
    """The whole lines of a selection."""
    starts = line_starts(content)
    first, last = (offset_of(content, starts, p, encoding) for p in (selection.start, selection.end))
    begin = max(start for start in starts if start <= first)
    end = next((start for start in starts if start >= last and start > begin), len(content))
    return begin, end


async def _rubric(workspace: Workspace) -> Rubric | None:
    written = await _content(workspace, RUBRIC)
    if not written.strip():
        return None
    try:
        return Rubric.model_validate_json(written)
    except ValidationError as wrong:
        first = wrong.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        why = f"{place}: {first['msg']}" if place else str(first["msg"])
        message = text("document.bad_rubric", path=RUBRIC, why=why)
        raise UsageError(Failure(kind="usage", message=message)) from wrong


async def _lessons(workspace: Workspace) -> str:
    return (await _content(workspace, LESSONS)).strip()[:MOST_LESSONS]


async def _content(workspace: Workspace, path: str) -> str:
    """The text of a file of the workspace; empty where there is none that can be read."""
    try:
        return (await workspace.read(path)).text if await workspace.exists(path) else ""
    except DaikuError:
        return ""
