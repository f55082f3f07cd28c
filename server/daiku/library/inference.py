"""The SDK's model clients: `inference(prompt, project)`, and a conversation with three methods."""

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
    """A conversation: the system prompt once, then user message and response by turns (R2.59–R2.65).

    Thin over `LLMAdapter.chat`, which does retries and prices; raises what it raises. Without `models`
    the provider is reached as the environment says (`ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`, …).
    """

    model: str = ""
    models: Models | None = None
    provider: ClassVar[str] = ""
    _system: str = ""
    _history: list[Message] = field(default_factory=list[Message])

    @property
    def adapter(self) -> LLMAdapter:
        """The model that is asked. Raises LLMError where it cannot be used."""
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
        """The reply's text to a single prompt, without the history (R0.4). What it used counts for the
        project (C0.18)."""
        return await self.adapter.inference(prompt, project_name)

    def used_by(self, project_name: str) -> Usage:
        """What every inference for this project used so far, whichever client of `models` asked."""
        return self._models.used_by(project_name)

    def send_system_prompt(self, prompt: str) -> None:
        """Set the system prompt; it replaces an earlier one."""
        self._system = prompt

    def send_user_message(self, message: str) -> None:
        self._history.append(UserMessage(text=message))

    async def get_response(self) -> str:
        """Request the reply to the history, append it to the history and return its text."""
        reply = await self.adapter.chat(self._history, stream=False, system=self._system)
        message: AssistantMessage = reply.message
        self._history.append(message)
        return message.text


@dataclass(slots=True)
class ClaudeClient(LLMClient):
    """Anthropic: strong reasoning, long context (R0.5–R0.7)."""

    model: str = SEED_MODELS["anthropic"]
    provider: ClassVar[str] = "anthropic"
    trait: ClassVar[str] = TRAITS["anthropic"]


@dataclass(slots=True)
class OpenAIClient(LLMClient):
    """OpenAI: general purpose, stable output (R0.8–R0.10, R2.63)."""

    model: str = SEED_MODELS["openai"]
    provider: ClassVar[str] = "openai"
    trait: ClassVar[str] = TRAITS["openai"]


@dataclass(slots=True)
class GeminiClient(LLMClient):
    """Gemini: fast inference, cost efficient (R0.11–R0.13)."""

    model: str = SEED_MODELS["gemini"]
    provider: ClassVar[str] = "gemini"
    trait: ClassVar[str] = TRAITS["gemini"]


@dataclass(slots=True)
class LMStudioClient(LLMClient):
    """LM Studio's server (R2.62); without a model the one that is loaded."""

    provider: ClassVar[str] = "lmstudio"


@dataclass(slots=True)
class OllamaClient(LLMClient):
    """Ollama (R2.64); without a model the first that it lists."""

    provider: ClassVar[str] = "ollama"
