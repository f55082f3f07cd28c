"""A patch as one WorkspaceEdit of smallest text edits: versioned for open documents, file operations if offered."""

from __future__ import annotations

from pathlib import Path

from daiku.core.changes.align import line_ops
from daiku.core.text.positions import Encoding, line_starts, range_of
from daiku.dataclass import dataclass
from daiku.domain.runs import Range
from daiku.domain.work.patches import FileChange
from daiku.lsp.documents.notebooks import OpenNotebook
from daiku.lsp.documents.open_documents import Document, to_uri
from daiku.lsp.initialize import Json, Offer

ANNOTATION = "daiku"


@dataclass(frozen=True, slots=True)
class Target:
    """One change of a patch, with what the editor has of its file."""

    change: FileChange
    path: Path
    to: Path | None = None
    document: Document | None = None
    notebook: OpenNotebook | None = None
    plain: bool = True
    """The file is UTF-8 without a mark (or does not exist): the editor will read it as we do."""

    @property
    def uri(self) -> str:
        return self.document.uri if self.document is not None else to_uri(self.path)


def fits(target: Target, offer: Offer) -> bool:
    """True where the client can carry out this change; otherwise it is done on the disk."""
    change = target.change
    if not offer.apply_edit:
        return False
    if change.kind == "edit":
        return target.document is not None or (offer.document_changes and target.plain)
    return offer.document_changes and change.kind in offer.resources and target.plain


def apply_params(targets: list[Target], label: str, offer: Offer, encoding: Encoding) -> Json:
    """The params of `workspace/applyEdit` for changes that all `fits`."""
    if not offer.document_changes:
        changes = {t.uri: _text(t, offer, encoding) for t in targets}
        return {"label": label, "edit": {"changes": changes}}
    edit: dict[str, Json] = {
        "documentChanges": [op for t in targets for op in _operations(t, offer, encoding)]
    }
    if offer.annotations:
        edit["changeAnnotations"] = {ANNOTATION: {"label": label, "needsConfirmation": False}}
    params: dict[str, Json] = {"label": label, "edit": edit}
    if offer.metadata:
        # An editor that knows a refactoring saves the files that were not open.
        params["metadata"] = {"isRefactoring": True}
    return params


def _operations(target: Target, offer: Offer, encoding: Encoding) -> list[Json]:
    change = target.change
    note = {"annotationId": ANNOTATION} if offer.annotations else {}
    match change.kind:
        case "create":
            made = {"kind": "create", "uri": target.uri, "options": {"overwrite": False}, **note}
            return [made, _document(target.uri, None, _text(target, offer, encoding))]
        case "delete":
            return [{"kind": "delete", "uri": target.uri, "options": {"ignoreIfNotExists": True}, **note}]
        case "rename":
            to = to_uri(target.to or target.path)
            moved = {
                "kind": "rename",
                "oldUri": target.uri,
                "newUri": to,
                "options": {"overwrite": False},
                **note,
            }
            edits = _text(target, offer, encoding)
            return [moved, _document(to, None, edits)] if edits else [moved]
        case "edit":
            version = target.document.version if target.document is not None else None
            return [_document(target.uri, version, _text(target, offer, encoding))]


def _document(uri: str, version: int | None, edits: list[Json]) -> Json:
    return {"textDocument": {"uri": uri, "version": version}, "edits": edits}


def _text(target: Target, offer: Offer, encoding: Encoding) -> list[Json]:
    old, new = target.change.old or "", target.change.new
    if new is None:
        return []
    note = {"annotationId": ANNOTATION} if offer.annotations else {}
    return [
        {"range": e.range.model_dump(), "newText": e.text, **note} for e in text_edits(old, new, encoding)
    ]


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace `range` of the old text by `text`."""

    range: Range
    text: str


def text_edits(old: str, new: str, encoding: Encoding) -> tuple[TextEdit, ...]:
    """Edits of whole lines that turn `old` into `new`; they do not overlap, positions are in `old`."""
    starts = line_starts(old)
    before, after = _lines(old, starts), _lines(new, line_starts(new))
    offsets = [*starts[: len(before)], len(old)]
    return tuple(
        TextEdit(range_of(old, starts, offsets[a], offsets[b], encoding), "".join(after[c:d]))
        for kind, a, b, c, d in line_ops(before, after)
        if kind != "equal"
    )


def _lines(text: str, starts: list[int]) -> list[str]:
    """Lines with their ends; the part after the last line end only where it is not empty."""
    ends = [*starts[1:], len(text)]
    lines = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    return lines if lines[-1] else lines[:-1]
