"""Models by name: resolution to adapters, listing of all providers, and shared open providers."""

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
"""Timeout in seconds for listing the models of one provider."""


def open_provider(entry: ProviderEntry, settings: ProviderSettings, deps: ProviderDeps) -> Provider:
    """Return the provider of `entry`. It connects on first use."""
    return entry.make(entry.service(settings), settings, deps)


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """The models of a provider, or the failure to list them."""

    provider: str
    models: tuple[ModelInfo, ...]
    error: Failure | None = None


class Models:
    """The models of the settings. One provider of each kind stays open for all runs."""

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
        self._probe = Probe(self._find_first_model, has_editor=bridge is not None)
        self._open: dict[str, Provider] = {}
        self._listed_infos: dict[tuple[str, str], ModelInfo] = {}
        self._usage_by_project: dict[str, Usage] = {}
        self._cures: dict[tuple[str, str], Cures] = {}

    def choose(self, name: str = "") -> ModelChoice:
        """Return the provider and model that `name` means; "" means the settings. Raises UsageError, LLMError."""
        return resolve_model(self._llm, name, self._probe)

    def resolve(self, name: str = "") -> LLMAdapter:
        """Return the adapter for the model that `name` means. Raises as `choose`."""
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
            learned=lambda: self._listed_infos.get((choice.provider, choice.model)),
            used=self._add_usage,
            cures=self._cures.setdefault((choice.provider, choice.model), Cures()),
        )

    def _add_usage(self, project: str, usage: Usage) -> None:
        self._usage_by_project[project] = self.used_by(project).plus(usage)

    def used_by(self, project: str) -> Usage:
        """Return the usage of all `inference` calls for this project so far (C0.18)."""
        return self._usage_by_project.get(project, Usage())

    def _fallback(self) -> LLMAdapter | None:
        name = self._llm.fallback_model.strip()
        return self._adapter(self.choose(name), lambda: None) if name else None

    def provider(self, name: str) -> Provider:
        """Return the open provider `name`. Raises UsageError, LLMError."""
        if name not in self._open:
            self._open[name] = open_provider(self._llm.entries[name], self._llm.of(name), self._deps)
        return self._open[name]

    async def list(self) -> tuple[ProviderModels, ...]:
        """List the models of all providers concurrently. An unreachable provider has an `error`."""
        listings = await asyncio.gather(*(self._list_models(name) for name in self._llm.entries))
        for listing in listings:
            self._listed_infos.update({(listing.provider, model.name): model for model in listing.models})
        return tuple(listings)

    async def _list_models(self, name: str) -> ProviderModels:
        from daiku.models.catalogue import list_known_models  # when used

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
            if getattr(error, "status", 0) in (404, 405, 501):  # the service has no list endpoint
                return ProviderModels(name, list_known_models(name))
            return ProviderModels(name, (), error.failure)

    async def aclose(self) -> None:
        """Close every connection."""
        providers, self._open = list(self._open.values()), {}
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _find_first_model(self, provider: str) -> str | None:
        entry, settings = self._llm.entries[provider], self._llm.of(provider)
        if entry.first_model is None:
            return None
        return entry.first_model(entry.address(settings.base_url), settings.bearer_headers())
