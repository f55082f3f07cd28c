"""Wire types of the server's requests to the editor: diagnostics, locations, saving, notebooks.

The server sends them only if the client offered `editor` at `initialize`."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Wire
from daiku.domain.runs import Position, Range


class EditorDiagnosticsParams(Wire):
    """Diagnostics of `uri`; of all files if it is absent.
    `settle`: wait until those of these files are up to date, and add only the errors of all others."""

    uri: str | None = None
    settle: tuple[str, ...] | None = None


class EditorDiagnostic(Wire):
    uri: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""
    cell: int | None = None
    """In a notebook (`uri` is the notebook's): the number of its cell, from 1; `range` is within the cell."""


class EditorDiagnosticsResult(Wire):
    diagnostics: tuple[EditorDiagnostic, ...]


class EditorPlaceParams(Wire):
    """`position` in the units of the negotiated position encoding, as everywhere on this wire."""

    uri: str
    position: Position


class EditorSaveParams(Wire):
    """Documents to save so that commands see our edit; before it, they had no unsaved changes."""

    uris: tuple[str, ...]


class EditorLocation(Wire):
    uri: str
    range: Range


class EditorLocationsResult(Wire):
    locations: tuple[EditorLocation, ...]


class EditorFileParams(Wire):
    uri: str


class EditorCell(Wire):
    """One cell of an open notebook. `uri` is its own document's; `id` the notebook format's, where it has one."""

    uri: str
    kind: Literal["code", "markup"]
    language: str
    text: str
    id: str = ""


class EditorNotebook(Wire):
    """A notebook as the editor has it, unsaved changes included; without `cells` it is not open there."""

    dirty: bool = False
    cells: tuple[EditorCell, ...] | None = None


class NewCell(Wire):
    """A cell as it should stand: `at` is the number (from 0) of the cell that it was; absent: a new one."""

    at: int | None = None
    kind: Literal["code", "markup"]
    language: str
    text: str


class EditNotebookParams(Wire):
    """`expected`: the cells' texts that the edit was made against; others are refused."""

    uri: str
    expected: tuple[str, ...]
    cells: tuple[NewCell, ...]


class EditNotebookResult(Wire):
    applied: bool
    reason: str = ""
