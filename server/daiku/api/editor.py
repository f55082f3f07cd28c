"""Wire types of requests to the editor: diagnostics, locations, saving, notebooks, language models.

They are sent only if the client offered `editor` or `languageModel` at `initialize`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.api.base import Token
from daiku.domain.base import JsonObject, Wire
from daiku.domain.runs import Position, Range


class EditorDiagnosticsParams(Wire):
    """Request for the diagnostics of `uri`; absent: of all files.

    `settle`: wait until those of these files are up to date, and add only the errors of all other files.
    """

    uri: str | None = None
    settle: tuple[str, ...] | None = None


class EditorDiagnostic(Wire):
    uri: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""
    cell: int | None = None
    """For a notebook (`uri` is the notebook): 1-based number of the cell; `range` is within the cell."""


class EditorDiagnosticsResult(Wire):
    diagnostics: tuple[EditorDiagnostic, ...]


class EditorPlaceParams(Wire):
    """A position, in the negotiated position encoding."""

    uri: str
    position: Position


class EditorSaveParams(Wire):
    """Documents to save after an edit, so that commands see it; they had no unsaved changes before."""

    uris: tuple[str, ...]


class EditorLocation(Wire):
    uri: str
    range: Range


class EditorLocationsResult(Wire):
    locations: tuple[EditorLocation, ...]


class EditorFileParams(Wire):
    uri: str


class EditorCell(Wire):
    """A cell of an open notebook. `uri` is the cell's document, `id` the cell id of the notebook format."""

    uri: str
    kind: Literal["code", "markup"]
    language: str
    text: str
    id: str = ""


class EditorNotebook(Wire):
    """A notebook in the editor, with unsaved changes; `cells` is absent if it is not open."""

    dirty: bool = False
    cells: tuple[EditorCell, ...] | None = None


class NewCell(Wire):
    """New state of a cell. `at` is its 0-based old number; absent: a new cell."""

    at: int | None = None
    kind: Literal["code", "markup"]
    language: str
    text: str


class EditNotebookParams(Wire):
    """`expected`: texts of the cells that the edit was made against; a mismatch is rejected."""

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
    """A model request.

    The client streams `$/progress {token: partialResultToken, value: Part}` until it answers.
    """

    model: str
    messages: tuple[LanguageModelMessage, ...]
    tools: tuple[LanguageModelTool, ...] = ()
    partial_result_token: Token | None = None


class LanguageModelResult(Wire):
    """The complete reply, including what was streamed; tokens are 0 if the editor does not report them."""

    parts: tuple[Part, ...]
    prompt_tokens: int = 0
    completion_tokens: int = 0


class EditorModel(Wire):
    """A model of the editor; `context` in tokens."""

    id: str
    name: str = ""
    vendor: str = ""
    family: str = ""
    context: int = 0
    tools: bool = True
    images: bool = False


class EditorModelsResult(Wire):
    models: tuple[EditorModel, ...]
