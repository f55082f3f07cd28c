"""Models by name: resolution to adapters, listing of all providers, and shared open providers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from daiku.dataclass import dataclass
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import DaikuError, Failure, LLMAuthError, LLMRequestError, UsageError
from daiku.domain.messages import ModelInfo, Usage
from daiku.models.families import OVERRIDES
from daiku.models.provider import ModelChoice, Provider, ProviderDeps, ProviderEntry
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import Text, joined, text

if TYPE_CHECKING:
    from daiku.models.adapter import Clock, LLMAdapter
    from daiku.models.cures import Cures
    from daiku.models.retries.policy import RetryPolicy


@dataclass(frozen=True, slots=True)
class Probe:
    """Checks of the environment. `first_model(provider)` asks a server for a model; None if it does not answer."""

    first_model: Callable[[str], str | None]
    has_editor: bool = False


def resolve_model(llm: LLMSettings, name: str, probe: Probe) -> ModelChoice:
    """Return the choice that `name` means: `provider/model`, a model, a provider, or "" for the settings.

    Raises UsageError for an unknown provider, LLMError (no_provider, auth) with how to get one.
    """
    from daiku.models.catalogue import normalize_model_name  # when used

    llm.check()
    requested = name.strip() or llm.model.strip()
    provider, model = _split_name(requested, llm)
    if OVERRIDES.forbidden and not (provider and llm.entries[provider].needs == "script"):
        message = text("llm.forbidden", name=requested or "llm.model")
        raise LLMRequestError(Failure(kind="usage", message=message, hint=text("llm.override")))
    if not provider:
        provider = _find_maker(model, llm) or next((p for p in llm.entries if is_usable(llm, p, probe)), "")
        if not provider:
            raise _no_provider_error(requested, llm)
    if (problem := missing_requirement(llm, provider, probe)) is not None:
        raise _add_model_name(problem, model and requested)
    # Paths, local tags, and names of other vendors are not normalized.
    if llm.entries[provider].needs == "key":
        model = normalize_model_name(model)
    return ModelChoice(provider, model or _choose_default(llm, provider, probe))


def _split_name(requested: str, llm: LLMSettings) -> tuple[str, str]:
    if requested in llm.entries:
        return requested, ""
    head, slash, rest = requested.partition("/")
    if slash and head in llm.entries and rest.strip():
        return head, rest
    if slash and (head in llm.entries or not llm.provider):
        message = _describe_mistake(requested, head, llm)
        raise UsageError(Failure(kind="usage", message=message, hint=_list_providers(llm)))
    return llm.provider, requested


def _describe_mistake(requested: str, provider: str, llm: LLMSettings) -> Text:
    """Return what is wrong with the provider in a model name."""
    import difflib  # when used

    if provider in llm.entries:
        return text("llm.no_model_part", name=requested, provider=provider)
    near = difflib.get_close_matches(provider, llm.entries, 1, cutoff=0.7)
    if near:
        return text("llm.no_provider_near", name=provider, model=requested, near=near[0])
    return text("llm.no_provider", name=provider, model=requested)


def _list_providers(llm: LLMSettings) -> Text:
    """Return the sentence that lists the providers."""
    return text("llm.providers", names=joined("list", llm.entries))


def _add_model_name(problem: DaikuError, requested: str) -> DaikuError:
    """Return the error with the requested model's name added to its message, if there is one."""
    if not requested:
        return problem
    message = text("llm.cannot_use", name=requested, why=problem.failure.message)
    return type(problem)(problem.failure.model_copy(update={"message": message}))


def _find_maker(model: str, llm: LLMSettings) -> str:
    """Return the maker of a known model if there is a key for it, else ""."""
    from daiku.models.catalogue import find_model, normalize_model_name  # when used

    entry = find_model(normalize_model_name(model)) if model else None
    return entry.provider if entry is not None and _has_key(llm.of(entry.provider)) else ""


def _has_key(settings: ProviderSettings) -> bool:
    header_names = {name.lower() for name in settings.headers}
    return bool(settings.api_key.get_secret_value()) or not header_names.isdisjoint(
        {"authorization", "x-api-key"}
    )


def is_usable(llm: LLMSettings, provider: str, probe: Probe) -> bool:
    """Return True if the provider can be the default: it has a key, a running server, or an editor."""
    needs = llm.entries[provider].needs
    match needs:
        case "key":
            return _has_key(llm.of(provider))
        case "server":
            return probe.first_model(provider) is not None
        case "address":
            return bool(llm.of(provider).base_url) and probe.first_model(provider) is not None
        case "editor":
            return probe.has_editor
        case "script":
            return False
        case _:
            assert_never(needs)


def missing_requirement(llm: LLMSettings, provider: str, probe: Probe) -> DaikuError | None:
    """Return the error for what a provider lacks, without sending a request; None if it lacks nothing."""
    entry, settings = llm.entries[provider], llm.of(provider)
    match entry.needs:
        case "key" if not _has_key(settings) and not settings.base_url:
            key_variable = settings.api_key_env
            message = text("llm.needs_key", service=entry.service(settings).label)
            hint = text("llm.set_key_in", name=key_variable) if key_variable else text("llm.set_key")
            return LLMAuthError(Failure(kind="auth", message=message, hint=hint))
        case "address" if not settings.base_url.strip():
            message = text("llm.needs_address", name=provider)
            return UsageError(Failure(kind="usage", message=message, hint=entry.how))
        case "editor" if not probe.has_editor:
            return LLMRequestError(Failure(kind="no_provider", message=text("llm.no_editor"), hint=entry.how))
        case "key" | "server" | "address" | "editor" | "script":
            return None
        case _:
            assert_never(entry.needs)


def _choose_default(llm: LLMSettings, provider: str, probe: Probe) -> str:
    """Return the model to use if none is named. Raises LLMRequestError if a server has none."""
    entry, settings = llm.entries[provider], llm.of(provider)
    is_makers_service = entry.needs == "key" and not settings.base_url
    if entry.first_model is None or is_makers_service:
        return entry.default_model
    first = probe.first_model(provider) or entry.default_model
    if first:
        return first
    message = text("llm.no_answer_or_model", service=entry.service(settings).label)
    raise LLMRequestError(Failure(kind="no_provider", message=message, hint=entry.how))


def _no_provider_error(requested: str, llm: LLMSettings) -> DaikuError:
    """Build the error for a machine without a usable provider, with a hint on how to get one."""
    keys = (entry.key_env[0] for entry in PROVIDERS.values() if entry.needs == "key")
    servers = (entry.label for entry in PROVIDERS.values() if entry.needs == "server")
    hint = text("llm.key_or_server", keys=joined("list", keys), servers=joined("list", servers))
    if requested:
        hint = joined("sentences", [_list_providers(llm), hint])
    problem = LLMRequestError(Failure(kind="no_provider", message=text("llm.no_model"), hint=hint))
    return _add_model_name(problem, requested)


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
