"""Server to client: what the editor knows (only where the client offered `editor`)."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Wire
from daiku.domain.runs import Position, Range


class EditorDiagnosticsParams(Wire):
    """Absent `uri`: of all files."""

    uri: str | None = None


class EditorDiagnostic(Wire):
    uri: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""


class EditorDiagnosticsResult(Wire):
    diagnostics: tuple[EditorDiagnostic, ...]


class EditorPlaceParams(Wire):
    """`position` in the units of the negotiated position encoding, as everywhere on this wire."""

    uri: str
    position: Position


class EditorSaveParams(Wire):
    """Documents that were as on the disk before an edit of ours: commands must see the edit."""

    uris: tuple[str, ...]


class EditorLocation(Wire):
    uri: str
    range: Range


class EditorLocationsResult(Wire):
    locations: tuple[EditorLocation, ...]
