"""The `lmstudio` provider: models on this machine, with their real context windows."""

from __future__ import annotations

from daiku.domain.base import JsonObject
from daiku.domain.errors import LLMError
from daiku.domain.messages import ModelInfo
from daiku.llm import catalogue
from daiku.llm.openai.provider import OpenAIProvider
from daiku.llm.transport.addresses import join_url, strip_version
from daiku.llm.transport.wire import number


class LMStudioProvider(OpenAIProvider):
    """LM Studio's OpenAI-compatible server; its own listing tells the windows."""

    async def models(self) -> tuple[ModelInfo, ...]:
        root = strip_version(self._service.address)
        try:
            listed = (await self._get(join_url(root, "/api/v0/models"))).get("data")
        except LLMError as error:
            if error.status in (0, 401, 403):
                raise
            return await super().models()  # older than 0.3.6
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        # Loaded ones first: they answer at once, and the first is what an empty model name means.
        entries.sort(key=lambda entry: entry.get("state") != "loaded")
        return tuple(
            self._info(entry) for entry in entries if entry.get("id") and entry.get("type") != "embeddings"
        )

    def _info(self, entry: JsonObject) -> ModelInfo:
        """What LM Studio says goes before what is known of the model elsewhere."""
        window = number(entry.get("loaded_context_length")) or number(entry.get("max_context_length"))
        abilities = entry.get("capabilities")
        known = catalogue.model_info(
            self.name, str(entry["id"]), context=self._settings.context_length or window
        )
        told = {"images": entry.get("type") == "vlm"}
        if isinstance(abilities, list):
            told["tools"] = "tool_use" in abilities
        return known.model_copy(update=told)
