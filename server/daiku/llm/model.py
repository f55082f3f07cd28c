"""All providers in one table, and the models of the settings: chosen, listed, kept open, let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from daiku.core.ports import LanguageModelBridge
from daiku.domain.config import PROVIDERS, Config, ProviderSettings
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.messages import ModelInfo, Usage
from daiku.llm.adapter import Clock, LLMAdapter
from daiku.llm.catalogue import offered
from daiku.llm.choice import LABELS, ModelChoice, Surroundings, resolve_model, settings_of, why_not
from daiku.llm.provider import Provider
from daiku.llm.retry import RetryPolicy
from daiku.llm.transport.local import LMSTUDIO, OLLAMA, first_model

LISTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Edges:
    """What providers are built with besides their settings."""

    bridge: LanguageModelBridge | None = None
    script_folders: tuple[Path, ...] = ()
    demo: Path | None = None
    locale: str = "en"


# Each provider is imported when it is first used: httpx2 alone costs 65 ms that the start of the
# server does not have, and who uses one provider needs none of the others.
def _anthropic(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.anthropic.provider import AnthropicProvider  # lazy: see above

    return AnthropicProvider(settings)


def _openai(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.openai.provider import openai_provider  # lazy: see above

    return openai_provider(settings)


def _gemini(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.gemini.provider import GeminiProvider  # lazy: see above

    return GeminiProvider(settings)


def _ollama(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.ollama.provider import OllamaProvider  # lazy: see above

    return OllamaProvider(settings)


def _lmstudio(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.openai.lmstudio import lmstudio_provider  # lazy: see above

    return lmstudio_provider(settings)


def _compatible(settings: ProviderSettings, _edges: Edges) -> Provider:
    from daiku.llm.openai.compatible import compatible_provider  # lazy: see above

    return compatible_provider(settings)


def _editor(settings: ProviderSettings, edges: Edges) -> Provider:
    from daiku.llm.editor import EditorProvider, no_editor  # lazy: see above

    if edges.bridge is None:
        raise no_editor()
    return EditorProvider(settings, edges.bridge)


def _scripted(_settings: ProviderSettings, edges: Edges) -> Provider:
    from daiku.llm.scripted import ScriptedProvider  # lazy: see above

    return ScriptedProvider((*edges.script_folders, Path.cwd()), edges.demo, edges.locale)


TABLE: dict[str, Callable[[ProviderSettings, Edges], Provider]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "gemini": _gemini,
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "compatible": _compatible,
    "editor": _editor,
    "scripted": _scripted,
}


def open_provider(name: str, settings: ProviderSettings, edges: Edges) -> Provider:
    """The provider `name`; it connects when it is first asked. Raises UsageError, LLMError."""
    return TABLE[name](settings, edges)


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """What a provider offers, or why it offers nothing."""

    provider: str
    models: tuple[ModelInfo, ...]
    error: Failure | None = None


class Models:
    """The models of the settings. One provider of each kind is kept open for all runs."""

    def __init__(
        self,
        config: Config,
        *,
        bridge: LanguageModelBridge | None = None,
        script_folders: Sequence[Path] = (),
        demo: Path | None = None,
        locale: str = "en",
        policy: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._llm = config.llm
        self._edges = Edges(bridge, tuple(script_folders), demo, locale)
        self._policy, self._clock = policy or RetryPolicy(), clock or Clock()
        self._around = Surroundings(self._first_model, has_editor=bridge is not None)
        self._open: dict[str, Provider] = {}
        self._learned: dict[tuple[str, str], ModelInfo] = {}
        self._used: dict[str, Usage] = {}

    def choose(self, name: str = "") -> ModelChoice:
        """What `name` means ("" = settings). Raises UsageError, LLMError with what to do."""
        return resolve_model(self._llm, name, self._around)

    def resolve(self, name: str = "") -> LLMAdapter:
        """The model that `name` means, ready to be asked. Raises as `choose`."""
        return self._adapter(self.choose(name), self._fallback)

    def _adapter(self, choice: ModelChoice, fallback: Callable[[], LLMAdapter | None]) -> LLMAdapter:
        return LLMAdapter(
            choice=choice,
            provider=self.provider(choice.provider),
            settings=settings_of(self._llm, choice.provider),
            fallback=fallback,
            policy=self._policy,
            clock=self._clock,
            learned=lambda: self._learned.get((choice.provider, choice.model)),
            used=self._use,
        )

    def _use(self, project: str, usage: Usage) -> None:
        self._used[project] = self.used_by(project).plus(usage)

    def used_by(self, project: str) -> Usage:
        """What every `inference` for this project used so far (C0.18)."""
        return self._used.get(project, Usage())

    def _fallback(self) -> LLMAdapter | None:
        name = self._llm.fallback_model.strip()
        return self._adapter(self.choose(name), lambda: None) if name else None

    def provider(self, name: str) -> Provider:
        """The open provider `name`. Raises UsageError, LLMError."""
        if name not in self._open:
            self._open[name] = open_provider(name, settings_of(self._llm, name), self._edges)
        return self._open[name]

    async def list(self) -> tuple[ProviderModels, ...]:
        """What every provider offers, asked side by side; one that cannot be reached comes with why."""
        found = await asyncio.gather(*(self._listed(name) for name in PROVIDERS))
        for entry in found:
            self._learned.update({(entry.provider, model.name): model for model in entry.models})
        return tuple(found)

    async def _listed(self, name: str) -> ProviderModels:
        try:
            if (problem := why_not(self._llm, name, self._around)) is not None:
                raise problem
            async with asyncio.timeout(LISTING_SECONDS):
                return ProviderModels(name, await self.provider(name).models())
        except TimeoutError:
            message = f"{LABELS[name]} did not list its models within {LISTING_SECONDS:g} s."
            return ProviderModels(name, (), Failure(kind="timeout", message=message, retryable=True))
        except DaikuError as error:
            if getattr(error, "status", 0) in (404, 405, 501):  # it answers, but keeps no list
                return ProviderModels(name, offered(name))
            return ProviderModels(name, (), error.failure)

    async def aclose(self) -> None:
        """Close every connection."""
        providers, self._open = list(self._open.values()), {}
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _first_model(self, provider: str) -> str | None:
        settings = settings_of(self._llm, provider)
        key = settings.api_key.get_secret_value()
        headers = dict(settings.headers) | ({"Authorization": f"Bearer {key}"} if key else {})
        return first_model(provider, _address(provider, settings), headers)


def _address(provider: str, settings: ProviderSettings) -> str:
    given = settings.base_url.strip().rstrip("/")
    if not given:
        return {"ollama": OLLAMA, "lmstudio": LMSTUDIO}.get(provider, "")
    given = given if "://" in given else f"http://{given}"
    if provider == "ollama":
        return given.removesuffix("/v1").removesuffix("/api")
    return given if given.count("/") > 2 else f"{given}/v1"
