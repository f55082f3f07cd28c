"""Server to client: the editor's own models (only where the client offered `languageModel`)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.api.base import Token
from daiku.domain.base import JsonObject, Wire


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
