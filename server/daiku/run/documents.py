"""Requests to revise a document, with its text, rubric, and lessons."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import Range
from daiku.domain.work.documents import Document, KeptEvaluation, Rubric
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.positions import Encoding, find_line_starts, to_offset
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Workspace
from daiku.team.rules.drafting.headings import detect_format, is_prose
from daiku.team.rules.drafting.reflection import format_evidence
from daiku.texts.text import text

AGENT = "document"
RUBRIC = ".daiku/rubric.json"
LESSONS = ".daiku/lessons.md"
_UNTITLED = "untitled:"
MOST_LESSONS = 4_000
"""Characters of the lessons file that a draft receives, at most."""


def is_untitled(uri: str) -> bool:
    """Return True if the URI is an unsaved editor document, which has no path."""
    return uri.startswith(_UNTITLED)


async def reflection_request(workspace: Workspace, evaluations: Sequence[KeptEvaluation]) -> RunRequest:
    """Return the request that derives lessons from evaluations of finished documents.

    Raises ToolValidationError.
    """
    document = Document(
        path=LESSONS,
        form="markdown",
        text=await _read_text(workspace, LESSONS),
        passages=format_evidence(evaluations),
    )
    request_text = text("document.reflect")
    return RunRequest(request_text, agent="reflection", brief=Brief(request=request_text, document=document))


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
    """Return the request to revise the document `uri` (a path or file URI), or only its `selection`.

    Rubric and lessons are read only in a `trusted` workspace. Raises ToolValidationError, UsageError.
    """
    if is_untitled(uri):
        name = uri.removeprefix(_UNTITLED)
        raise UsageError(Failure(kind="usage", message=text("document.untitled", name=name)))
    path = workspace.relative(workspace.locate(uri))
    if path.lower().endswith(".ipynb"):
        raise UsageError(Failure(kind="usage", message=text("document.notebook", path=path)))
    exists = await workspace.exists(uri)
    content = (await workspace.read(uri)).text if exists else ""
    document = Document(
        path=path,
        form=detect_format(path),
        text=content,
        depth=depth,
        selection=None if selection is None else _line_offsets(content, selection, encoding),
        rubric=await _read_rubric(workspace) if trusted else None,
        lessons=await _read_lessons(workspace) if trusted else "",
    )
    return RunRequest(instruction, agent=AGENT, brief=Brief(request=instruction, document=document))


async def brief_of_context(workspace: Workspace, request: RunRequest, *, trusted: bool) -> Brief | None:
    """Return the brief for the first document in a request's context, or None. Raises as `document_request`."""
    for item in request.context:
        uri = item.uri or ""
        if item.kind in ("file", "selection") and is_prose(uri) and not is_untitled(uri):
            selection = item.range if item.kind == "selection" else None
            revision = await document_request(
                workspace, uri, request.text, selection=selection, trusted=trusted
            )
            return revision.brief
    return None


def _line_offsets(content: str, selection: Range, encoding: Encoding) -> tuple[int, int]:
    """Return the start and end offsets of the lines of a selection, in characters."""
    starts = find_line_starts(content)
    first, last = (to_offset(content, starts, p, encoding) for p in (selection.start, selection.end))
    begin = max(start for start in starts if start <= first)
    end = next((start for start in starts if start >= last and start > begin), len(content))
    return begin, end


async def _read_rubric(workspace: Workspace) -> Rubric | None:
    content = await _read_text(workspace, RUBRIC)
    if not content.strip():
        return None
    try:
        return Rubric.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        why = f"{place}: {first['msg']}" if place else str(first["msg"])
        message = text("document.bad_rubric", path=RUBRIC, why=why)
        raise UsageError(Failure(kind="usage", message=message)) from error


async def _read_lessons(workspace: Workspace) -> str:
    return (await _read_text(workspace, LESSONS)).strip()[:MOST_LESSONS]


async def _read_text(workspace: Workspace, path: str) -> str:
    """Return the text of a workspace file; empty if it is missing or cannot be read."""
    try:
        return (await workspace.read(path)).text if await workspace.exists(path) else ""
    except DaikuError:
        return ""
