"""Resolution of a model name to a provider and a model, with errors for providers that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from daiku.dataclass import dataclass
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import DaikuError, Failure, LLMAuthError, LLMRequestError, UsageError
from daiku.models.families import OVERRIDES
from daiku.models.provider import ModelChoice
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.texts.text import Text, joined, text


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
