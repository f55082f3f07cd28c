"""The editor's own models behind the port that the `editor` provider uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import TypeAdapter, ValidationError

from daiku.api import EditorModelsResult, LanguageModelResult, Part
from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure, LLMError
from daiku.lsp.initialize import Json
from daiku.lsp.wire.protocol import Protocol
from daiku.lsp.wire.refused import Refused
from daiku.texts.text import text

_PART: TypeAdapter[Part] = TypeAdapter(Part)
_KINDS = frozenset({"auth", "rate_limit", "timeout", "connection", "overloaded", "bad_request", "not_found",
                    "context_overflow", "stream_cut", "content_filter", "no_provider"})  # fmt: skip


class ClientModels:
    """Implements ports.LanguageModelBridge over `daiku/languageModel`."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    async def list_models(self) -> tuple[JsonObject, ...]:
        answer = await self._ask("daiku/languageModel/list", {})
        try:
            found = EditorModelsResult.model_validate(answer)
        except ValidationError:
            raise _malformed() from None
        return tuple(model.model_dump(mode="json", by_alias=True) for model in found.models)

    async def request(
        self,
        model: str,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        part: Callable[[JsonObject], None] | None = None,
    ) -> JsonObject:
        params: dict[str, Json] = {"model": model, "messages": list(messages), "tools": list(tools)}

        def hear(value: Json) -> None:
            try:
                piece = _PART.validate_python(value)
            except ValidationError:
                return
            if part is not None:
                part(piece.model_dump(mode="json", by_alias=True))

        if part is not None:
            params["partialResultToken"] = self._protocol.next_token
        answer = await self._ask("daiku/languageModel", params, hear)
        try:
            return LanguageModelResult.model_validate(answer).model_dump(mode="json", by_alias=True)
        except ValidationError:
            raise _malformed() from None

    async def _ask(self, method: str, params: Json, hear: Callable[[Json], None] | None = None) -> Json:
        try:
            return await self._protocol.ask(method, params, hear)
        except Refused as error:
            data = error.data if isinstance(error.data, dict) else {}
            kind = data.get("kind")
            raise LLMError(
                Failure.model_validate(
                    {
                        "kind": kind if isinstance(kind, str) and kind in _KINDS else "bad_request",
                        "message": str(data.get("message") or error.message) or text("editor.model_failed"),
                        "hint": str(data.get("hint") or ""),
                        "retryable": kind in ("rate_limit", "timeout", "connection", "overloaded"),
                    }
                )
            ) from None


def _malformed() -> LLMError:
    return LLMError(Failure(kind="format", message=text("editor.model_bad_answer")))
