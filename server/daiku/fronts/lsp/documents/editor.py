"""Workspace of an editor client: unsaved text takes precedence, and edits go through the editor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.runs import Range
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.diff import compute_line_ops, stat
from daiku.edits.rules.positions import Encoding, find_line_starts, to_range
from daiku.fronts.lsp.documents.notebooks import OpenNotebook, edit_notebook, open_notebook
from daiku.fronts.lsp.documents.open_documents import Documents, OpenDocument, to_uri
from daiku.fronts.lsp.initialize import Json, Offer
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError
from daiku.library.shown import ShownWorkspace, is_plain, stale_error
from daiku.run.rules.outside import TextFile, Workspace
from daiku.texts.text import render, text
from daiku.tools.rules.notebooks.celltext import is_notebook

log = logging.getLogger(__name__)

ANNOTATION = "daiku"
"""Id of the change annotation."""


@dataclass(frozen=True, slots=True)
class Target:
    """One change of a patch, with the editor's document or notebook for its file."""

    change: FileChange
    path: Path
    to: Path | None = None
    document: OpenDocument | None = None
    notebook: OpenNotebook | None = None
    plain: bool = True
    """True if the file is UTF-8 without a byte order mark, or new, so that the editor reads it as we do."""

    @property
    def uri(self) -> str:
        return self.document.uri if self.document is not None else to_uri(self.path)


def can_apply(target: Target, offer: Offer) -> bool:
    """Return True if the client can apply this change; otherwise it is made on the disk."""
    change = target.change
    if not offer.apply_edit:
        return False
    if change.kind == "edit":
        return target.document is not None or (offer.document_changes and target.plain)
    return offer.document_changes and change.kind in offer.resources and target.plain


def apply_params(targets: list[Target], label: str, offer: Offer, encoding: Encoding) -> Json:
    """Return the params of `workspace/applyEdit`; every target must pass `can_apply`."""
    if not offer.document_changes:
        changes = {t.uri: _text_edits(t, offer, encoding) for t in targets}
        return {"label": label, "edit": {"changes": changes}}
    edit: dict[str, Json] = {
        "documentChanges": [op for t in targets for op in _operations(t, offer, encoding)]
    }
    if offer.annotations:
        edit["changeAnnotations"] = {ANNOTATION: {"label": label, "needsConfirmation": False}}
    params: dict[str, Json] = {"label": label, "edit": edit}
    if offer.metadata:
        # Editors save files that were not open after a refactoring.
        params["metadata"] = {"isRefactoring": True}
    return params


def _operations(target: Target, offer: Offer, encoding: Encoding) -> list[Json]:
    change = target.change
    note = {"annotationId": ANNOTATION} if offer.annotations else {}
    match change.kind:
        case "create":
            create = {"kind": "create", "uri": target.uri, "options": {"overwrite": False}, **note}
            return [create, _document_edit(target.uri, None, _text_edits(target, offer, encoding))]
        case "delete":
            return [{"kind": "delete", "uri": target.uri, "options": {"ignoreIfNotExists": True}, **note}]
        case "rename":
            to = to_uri(target.to or target.path)
            rename = {
                "kind": "rename",
                "oldUri": target.uri,
                "newUri": to,
                "options": {"overwrite": False},
                **note,
            }
            edits = _text_edits(target, offer, encoding)
            return [rename, _document_edit(to, None, edits)] if edits else [rename]
        case "edit":
            version = target.document.version if target.document is not None else None
            return [_document_edit(target.uri, version, _text_edits(target, offer, encoding))]


def _document_edit(uri: str, version: int | None, edits: list[Json]) -> Json:
    return {"textDocument": {"uri": uri, "version": version}, "edits": edits}


def _text_edits(target: Target, offer: Offer, encoding: Encoding) -> list[Json]:
    old, new = target.change.old or "", target.change.new
    if new is None:
        return []
    note = {"annotationId": ANNOTATION} if offer.annotations else {}
    return [
        {"range": e.range.model_dump(), "newText": e.text, **note} for e in text_edits(old, new, encoding)
    ]


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement of `range` of the old text by `text`."""

    range: Range
    text: str


def text_edits(old: str, new: str, encoding: Encoding) -> tuple[TextEdit, ...]:
    """Return non-overlapping edits of complete lines that turn `old` into `new`; positions are in `old`."""
    starts = find_line_starts(old)
    before, after = _split_lines(old, starts), _split_lines(new, find_line_starts(new))
    offsets = [*starts[: len(before)], len(old)]
    return tuple(
        TextEdit(to_range(old, starts, offsets[a], offsets[b], encoding), "".join(after[c:d]))
        for kind, a, b, c, d in compute_line_ops(before, after)
        if kind != "equal"
    )


def _split_lines(text: str, starts: list[int]) -> list[str]:
    """Split into lines with their ends; the last part is included only if it is not empty."""
    ends = [*starts[1:], len(text)]
    lines = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    return lines if lines[-1] else lines[:-1]


REPORT_SECONDS = 0.5
"""Timeout in seconds for the editor to report a change that we requested; Neovim waits 150 ms."""
RELOAD_SECONDS = 3.0
"""Timeout in seconds for the editor to reload a clean file that changed on the disk."""
POLL_SECONDS = 0.02
"""Seconds before the second check for missing changes."""


class EditorWorkspace(ShownWorkspace):
    """Workspace of an editor (`ports.Workspace`). `disk` is replaced when folders change."""

    def __init__(self, disk: Workspace, documents: Documents, protocol: Protocol, offer: Offer) -> None:
        super().__init__(disk)
        self._documents = documents
        self._protocol = protocol
        self._offer = offer
        self._one_at_a_time = asyncio.Lock()

    async def read(self, path: str) -> TextFile:
        """Return the open document's text, else the file's."""
        place = self.locate(path)
        document = self._documents.at(place)
        if document is None:
            return await self._notebook_or_file(path, place)
        return TextFile(self.relative(place), document.displayed_text, version=document.version)

    async def _notebook_or_file(self, path: str, place: Path) -> TextFile:
        file = await self.disk.read(path)
        notebook = await self._notebook(path, place, file.text)
        return file if notebook is None else TextFile(file.path, notebook.raw, file.encoding, file.bom)

    async def _notebook(self, path: str, place: Path, on_disk: str) -> OpenNotebook | None:
        if not self._offer.editor or not is_notebook(path):
            return None
        return await open_notebook(self._protocol, place, on_disk)

    async def exists(self, path: str) -> bool:
        return self._documents.at(self.locate(path)) is not None or await self.disk.exists(path)

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        """Apply `patch` as one applyEdit; what the client cannot apply is written to the disk."""
        async with self._one_at_a_time:
            targets = [await self._resolve_target(change) for change in patch.files]
            plain = [t for t in targets if t.notebook is None]
            via_client = [t for t in plain if can_apply(t, self._offer)]
            rest = [t for t in plain if not can_apply(t, self._offer)]
            for target in rest:
                _refuse_unsaved(target, await self.on_disk(target.change.path))
            for target in targets:
                if target.notebook is not None:
                    await self._edit_notebook(target.change, target.notebook)
            if via_client:
                saved_paths = await self._saved_paths(via_client)
                await self._send(via_client, label)
                await self._wait_until_applied(via_client, saved_paths, label)
                if exact:
                    await self._restore_exact_text(
                        [t for t in via_client if t.change.path in saved_paths], label
                    )
            if rest:
                await self.disk.apply(Patch(files=tuple(t.change for t in rest)), label)
            return tuple(stat(change) for change in patch.files)

    # ---- preparation

    async def _resolve_target(self, change: FileChange) -> Target:
        place = self.locate(change.path)
        document = self._documents.at(place)
        to = self.locate(change.to) if change.to is not None else None
        if document is not None:
            if document.displayed_text != change.old:
                raise stale_error(change.path, text("editor.changed_in_editor"))
            return Target(change, place, to, document)
        if change.old is None and change.kind in ("delete", "rename"):
            return Target(change, place, to, plain=False)  # not text: checked and changed on the disk
        if change.old is None:
            if await self.disk.exists(change.path):
                raise stale_error(change.path, text("editor.exists"))
            return Target(change, place, to)
        file = await self.disk.read(change.path)
        notebook = await self._notebook(change.path, place, file.text) if change.kind == "edit" else None
        if (notebook.raw if notebook is not None else file.text) != change.old:
            if notebook is not None:
                raise stale_error(change.path, text("editor.changed_in_editor"))
            raise stale_error(change.path, text("editor.changed_on_disk"))
        if notebook is not None:
            return Target(change, place, to, notebook=notebook)
        return Target(change, place, to, plain=is_plain(file))

    async def _saved_paths(self, targets: list[Target]) -> set[str]:
        """Return the paths whose documents are saved or not open: they are saved after the edit."""
        return {
            t.change.path
            for t in targets
            if t.document is None or await self.on_disk(t.change.path) == t.document.text
        }

    # ---- the edit

    async def _edit_notebook(self, change: FileChange, notebook: OpenNotebook) -> None:
        why_not = await edit_notebook(self._protocol, notebook, change.new or "")
        if why_not:
            raise stale_error(change.path, why_not)
        if not notebook.dirty:
            await self._save_uris([notebook.uri])

    async def _send(self, targets: list[Target], label: str) -> None:
        first = targets[0].change.path
        for target in targets:  # checked again: documents may have changed meanwhile
            if target.document is not None and target.document.displayed_text != target.change.old:
                raise stale_error(target.change.path, text("editor.changed_in_editor"))
        params = apply_params(
            targets, render(label, self._protocol.language), self._offer, self._documents.encoding
        )
        for target in targets:
            if target.document is not None:
                target.document.changed.clear()
        try:
            answer: Json = await self._protocol.ask("workspace/applyEdit", params)
        except RpcError as error:
            await self._wait_for_reports(targets)
            raise stale_error(first, text("editor.refused", what=error.message)) from None
        if not isinstance(answer, dict) or answer.get("applied") is not True:
            await self._wait_for_reports(targets)
            reason = answer.get("failureReason") if isinstance(answer, dict) else None
            raise stale_error(
                first,
                text("editor.not_applied_because", what=str(reason) if reason else text("editor.no_reason")),
            )

    async def _wait_for_reports(self, targets: list[Target]) -> None:
        """Wait for changes that an editor which rejected the edit may report a moment later.

        The next attempt is then made against the new text.
        """
        waiters = [
            asyncio.ensure_future(t.document.changed.wait()) for t in targets if t.document is not None
        ]
        if waiters:
            _, pending = await asyncio.wait(
                waiters, timeout=REPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            for task in pending:
                task.cancel()

    # ---- follow-up

    async def _wait_until_applied(self, targets: list[Target], saved_paths: set[str], label: str) -> None:
        """Wait until the editor shows the edit, and save files that were saved before."""
        for target in targets:
            document = target.document
            # A text reported since then contains our edit, and possibly further typing.
            if document is not None and target.change.kind == "edit" and not document.changed.is_set():
                document.expected = target.change.new
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REPORT_SECONDS):
                for target in targets:
                    if target.document is not None and target.document.expected is not None:
                        await target.document.changed.wait()
        if self._offer.editor:
            await self._save([t for t in targets if t.change.path in saved_paths])
        closed = [t for t in targets if t.document is None]
        missing = [t for t in closed if not await self._has_arrived(t)]
        if missing:
            await asyncio.sleep(POLL_SECONDS)
            missing = [t for t in missing if not await self._has_arrived(t)]
        if missing:
            # The client accepted but wrote nothing visible: commands must find the edit.
            log.info("the client left %d closed files to us", len(missing))
            await self.disk.apply(Patch(files=tuple(t.change for t in missing)), label)

    async def _save(self, targets: list[Target]) -> None:
        uris = [t.uri for t in targets if t.change.kind in ("edit", "create")]
        if uris:
            await self._save_uris(uris)

    async def _save_uris(self, uris: list[str]) -> None:
        try:
            await self._protocol.ask("daiku/editor/save", {"uris": uris})
        except RpcError as error:
            log.warning("the editor did not save: %s", error.message)

    async def _restore_exact_text(self, targets: list[Target], label: str) -> None:
        """Undo what a formatter changed on save by writing the exact text to the file; the editor reloads it."""
        for target in targets:
            change, document = target.change, self._documents.at(target.to or target.path)
            current = await self.on_disk(change.to or change.path)
            unsaved = document is not None and document.text != current
            if change.kind not in ("edit", "create") or current in (None, change.new) or unsaved:
                continue
            back = FileChange(path=change.path, kind="edit", old=current, new=change.new)
            if document is not None:
                document.changed.clear()
            await self.disk.apply(Patch(files=(back,)), label)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RELOAD_SECONDS):
                    while document is not None and document.text != change.new:
                        await document.changed.wait()
                        document.changed.clear()

    async def _has_arrived(self, target: Target) -> bool:
        """Return True if the disk or the editor shows the change of a file that was closed."""
        change = target.change
        path = change.to or change.path
        place = target.to or target.path
        if change.kind == "delete":
            return not await self.disk.exists(path)
        document = self._documents.at(place)
        if document is not None and document.text == change.new:
            return True
        return await self.on_disk(path) == (change.old if change.new is None else change.new)


def _refuse_unsaved(target: Target, on_disk: str | None) -> None:
    document: OpenDocument | None = target.document
    if document is not None and document.text != on_disk:
        raise stale_error(target.change.path, text("editor.unsaved"))
