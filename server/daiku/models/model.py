"""Models by name: resolves a name to an adapter, lists what every provider offers, keeps providers open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.messages import ModelInfo, Usage
from daiku.models.choice import Probe, missing_requirement, resolve_model
from daiku.models.provider import ModelChoice, Provider, ProviderDeps, ProviderEntry
from daiku.models.table import LLMSettings
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.models.adapter import Clock, LLMAdapter
    from daiku.models.cures import Cures
    from daiku.models.retries.policy import RetryPolicy

LISTING_SECONDS = 10.0


def open_provider(entry: ProviderEntry, settings: ProviderSettings, deps: ProviderDeps) -> Provider:
    """The provider of `entry`; it connects when it is first asked."""
    return entry.make(entry.service(settings), settings, deps)


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
        llm: LLMSettings,
        *,
        bridge: LanguageModelBridge | None = None,
        script_folders: Sequence[Path] = (),
        demo: Path | None = None,
        locale: str = "en",
        policy: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._llm = llm
        self._deps = ProviderDeps(bridge, tuple(script_folders), demo, locale)
        self.policy, self._clock = policy, clock
        self._probe = Probe(self._first_model, has_editor=bridge is not None)
        self._open: dict[str, Provider] = {}
        self._learned: dict[tuple[str, str], ModelInfo] = {}
        self._used: dict[str, Usage] = {}
        self._cures: dict[tuple[str, str], Cures] = {}

    def choose(self, name: str = "") -> ModelChoice:
        """What `name` means ("" = settings). Raises UsageError, LLMError with what to do."""
        return resolve_model(self._llm, name, self._probe)

    def resolve(self, name: str = "") -> LLMAdapter:
        """The model that `name` means, ready to be asked. Raises as `choose`."""
        return self._adapter(self.choose(name), self._fallback)

    def _adapter(self, choice: ModelChoice, fallback: Callable[[], LLMAdapter | None]) -> LLMAdapter:
        from daiku.models.adapter import Clock, LLMAdapter  # when used
        from daiku.models.cures import Cures  # when used
        from daiku.models.retries.policy import RetryPolicy  # when used

        return LLMAdapter(
            choice=choice,
            provider=self.provider(choice.provider),
            entry=self._llm.entries[choice.provider],
            settings=self._llm.of(choice.provider),
            fallback=fallback,
            policy=self.policy or RetryPolicy(),
            clock=self._clock or Clock(),
            learned=lambda: self._learned.get((choice.provider, choice.model)),
            used=self._use,
            cures=self._cures.setdefault((choice.provider, choice.model), Cures()),
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
            self._open[name] = open_provider(self._llm.entries[name], self._llm.of(name), self._deps)
        return self._open[name]

    async def list(self) -> tuple[ProviderModels, ...]:
        """What every provider offers, asked side by side; one that cannot be reached comes with why."""
        found = await asyncio.gather(*(self._listed(name) for name in self._llm.entries))
        for entry in found:
            self._learned.update({(entry.provider, model.name): model for model in entry.models})
        return tuple(found)

    async def _listed(self, name: str) -> ProviderModels:
        from daiku.models.catalogue import models_of  # when used

        try:
            self._llm.check()
            if (problem := missing_requirement(self._llm, name, self._probe)) is not None:
                raise problem
            async with asyncio.timeout(LISTING_SECONDS):
                return ProviderModels(name, await self.provider(name).models())
        except TimeoutError:
            label = self._llm.entries[name].service(self._llm.of(name)).label
            message = text("llm.not_listed", service=label, seconds=f"{LISTING_SECONDS:g}")
            return ProviderModels(name, (), Failure(kind="timeout", message=message, retryable=True))
        except DaikuError as error:
            if getattr(error, "status", 0) in (404, 405, 501):  # it answers, but keeps no list
                return ProviderModels(name, models_of(name))
            return ProviderModels(name, (), error.failure)

    async def aclose(self) -> None:
        """Close every connection."""
        providers, self._open = list(self._open.values()), {}
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _first_model(self, provider: str) -> str | None:
        entry, settings = self._llm.entries[provider], self._llm.of(provider)
        if entry.first_model is None:
            return None
        return entry.first_model(entry.address(settings.base_url), settings.bearer_headers())
