"""Model clients: a single inference, or a conversation."""

from __future__ import annotations

import os
from typing import ClassVar

from daiku.dataclass import dataclass, field
from daiku.domain.messages import AssistantMessage, Message, Usage, UserMessage
from daiku.models.adapter import LLMAdapter
from daiku.models.catalogue import SEED_MODELS, TRAITS
from daiku.models.model import Models
from daiku.settings import from_mapping


@dataclass(slots=True)
class LLMClient:
    """A conversation: one system prompt, then user messages and responses in turn (R2.59–R2.65).

    A thin layer over `LLMAdapter.chat`, which handles retries and prices; its exceptions are passed on.
    Without `models` the provider is configured from the environment (`ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`,
    …).
    """

    model: str = ""
    models: Models | None = None
    provider: ClassVar[str] = ""
    _system: str = ""
    _history: list[Message] = field(default_factory=list[Message])

    @property
    def adapter(self) -> LLMAdapter:
        """The model of the client. Raises LLMError if it cannot be used."""
        name = (
            f"{self.provider}/{self.model}" if self.provider and self.model else self.provider or self.model
        )
        return self._models.resolve(name)

    @property
    def _models(self) -> Models:
        if self.models is None:
            self.models = Models(from_mapping({}, os.environ).llm)
        return self.models

    @property
    def history(self) -> tuple[Message, ...]:
        return tuple(self._history)

    async def inference(self, prompt: str, project_name: str = "") -> str:
        """Return the reply to a single prompt, without the history (R0.4).

        Its usage is added to the project (C0.18).
        """
        return await self.adapter.inference(prompt, project_name)

    def used_by(self, project_name: str) -> Usage:
        """Return the total usage of a project, for all clients of `models`."""
        return self._models.used_by(project_name)

    def send_system_prompt(self, prompt: str) -> None:
        """Set the system prompt, replacing an earlier one."""
        self._system = prompt

    def send_user_message(self, message: str) -> None:
        self._history.append(UserMessage(text=message))

    async def get_response(self) -> str:
        """Request the reply to the history, append it, and return its text."""
        reply = await self.adapter.chat(self._history, stream=False, system=self._system)
        message: AssistantMessage = reply.message
        self._history.append(message)
        return message.text


@dataclass(slots=True)
class ClaudeClient(LLMClient):
    """Anthropic client: strong reasoning, long context (R0.5–R0.7)."""

    model: str = SEED_MODELS["anthropic"]
    provider: ClassVar[str] = "anthropic"
    trait: ClassVar[str] = TRAITS["anthropic"]


@dataclass(slots=True)
class OpenAIClient(LLMClient):
    """OpenAI client: general purpose, stable output (R0.8–R0.10, R2.63)."""

    model: str = SEED_MODELS["openai"]
    provider: ClassVar[str] = "openai"
    trait: ClassVar[str] = TRAITS["openai"]


@dataclass(slots=True)
class GeminiClient(LLMClient):
    """Gemini client: fast inference, cost efficient (R0.11–R0.13)."""

    model: str = SEED_MODELS["gemini"]
    provider: ClassVar[str] = "gemini"
    trait: ClassVar[str] = TRAITS["gemini"]


@dataclass(slots=True)
class LMStudioClient(LLMClient):
    """LM Studio client (R2.62); without a model the loaded one is used."""

    provider: ClassVar[str] = "lmstudio"


@dataclass(slots=True)
class OllamaClient(LLMClient):
    """Ollama client (R2.64); without a model the first listed one is used."""

    provider: ClassVar[str] = "ollama"
