"""`daiku/document`: revise a document, and answer with the change map that came of it."""

from __future__ import annotations

from daiku import api
from daiku.core.changes.changemap import apply_map, range_edits, unredacted
from daiku.core.drafting.moves import document_of
from daiku.core.drafting.progress import merged_work, progress_of
from daiku.core.guard.redact import MARK
from daiku.core.matching.refusal import Refusal
from daiku.core.state.state import State
from daiku.core.text.positions import Encoding
from daiku.domain.runs import RunResult
from daiku.domain.work.patches import PatchJSON, RangeEdit
from daiku.lsp.connection import ClientConnection
from daiku.lsp.requests.run_requests import RunFold, start
from daiku.sdk.fronts import document_request


async def document(c: ClientConnection, p: api.DocumentParams) -> RunResult:
    """Lead a document through draft, style, reference, guard and evaluation. The patch is of the text as it stood
    when this was asked, also where the person took only a part of it, or nothing. `edits` are the same changes by
    line and character."""
    app = await c.app()
    encoding = c.documents.encoding
    depth = 1 if p.depth is None else p.depth
    request = await document_request(
        app.workspace,
        p.uri,
        p.instruction,
        depth=depth,
        selection=p.range,
        encoding=encoding,
        trusted=app.runs.services.trusted,
    )
    given = request.brief.document if request.brief is not None else None
    old = given.text if given is not None else ""
    fold = RunFold()
    result = await start(c, p, request, fold.hear)
    patch = revised(fold.state, old)
    return api.DocumentResult(**dict(result), patch=patch, edits=_edits(old, patch, encoding))


def _edits(old: str, patch: PatchJSON | None, encoding: Encoding) -> tuple[RangeEdit, ...]:
    try:
        return () if patch is None else range_edits(old, patch.change_map, encoding)
    except ValueError:  # half of a surrogate pair: no editor could take it
        return ()


def revised(state: State, old: str) -> PatchJSON | None:
    """The patch of `old`, the document as it was read, that the run came to; None where it came to none, or where
    a guard blocked it."""
    document = document_of(state)
    blocked = state.failure is not None and state.failure.kind == "guardrail"
    if document is None or blocked:
        return None
    found = merged_work(progress_of(state, document)).patch
    changes = unredacted(old, document.text, MARK, found.change_map)
    if isinstance(changes, Refusal) or not changes:
        return None
    new = apply_map(old, changes)
    return None if isinstance(new, Refusal) else PatchJSON(new_text=new, change_map=changes)
