"""Wire types of the server's requests to the editor: diagnostics, locations, saving, notebooks, language models.

The server sends them only if the client offered `editor` or `languageModel` at `initialize`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.api.base import Token
from daiku.domain.base import JsonObject, Wire
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


class TextPart(Wire):
    type: Literal["text"] = "text"
    text: str


class ThinkingPart(Wire):
    type: Literal["thinking"] = "thinking"
    text: str


class ImagePart(Wire):
    """`data` is base64."""

    type: Literal["image"] = "image"
    media_type: str
    data: str


class CallPart(Wire):
    type: Literal["call"] = "call"
    call_id: str
    name: str
    input: JsonObject


class ResultPart(Wire):
    type: Literal["result"] = "result"
    call_id: str
    text: str


Part: TypeAlias = Annotated[
    TextPart | ThinkingPart | ImagePart | CallPart | ResultPart, Field(discriminator="type")
]


class LanguageModelMessage(Wire):
    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


class LanguageModelTool(Wire):
    """`inputSchema` is JSON Schema."""

    name: str
    description: str
    input_schema: JsonObject


class LanguageModelParams(Wire):
    """The client streams `$/progress {token: partialResultToken, value: Part}` while it answers."""

    model: str
    messages: tuple[LanguageModelMessage, ...]
    tools: tuple[LanguageModelTool, ...] = ()
    partial_result_token: Token | None = None


class LanguageModelResult(Wire):
    """The whole reply, what was streamed included; tokens 0 where the editor does not tell."""

    parts: tuple[Part, ...]
    prompt_tokens: int = 0
    completion_tokens: int = 0


class EditorModel(Wire):
    """A model that the editor lends; `context` in tokens."""

    id: str
    name: str = ""
    vendor: str = ""
    family: str = ""
    context: int = 0
    tools: bool = True
    images: bool = False


class EditorModelsResult(Wire):
    models: tuple[EditorModel, ...]
