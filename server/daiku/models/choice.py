"""Which provider and model a name means, and what to do where none can be used."""

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
    """What can be found out of a machine: `first_model(provider)` asks a server, None where it does not answer."""

    first_model: Callable[[str], str | None]
    has_editor: bool = False


def resolve_model(llm: LLMSettings, name: str, probe: Probe) -> ModelChoice:
    """What `name` means: `provider/model`, a model, a provider, or "" for what the settings say.

    Raises UsageError for an unknown provider, LLMError (no_provider, auth) with how to get one.
    """
    from daiku.models.catalogue import normalize_model_name  # when used

    llm.check()
    wanted = name.strip() or llm.model.strip()
    provider, model = _split(wanted, llm)
    if OVERRIDES.forbidden and not (provider and llm.entries[provider].needs == "script"):
        message = text("llm.forbidden", name=wanted or "llm.model")
        raise LLMRequestError(Failure(kind="usage", message=message, hint=text("llm.override")))
    if not provider:
        provider = _owner(model, llm) or next((p for p in llm.entries if usable(llm, p, probe)), "")
        if not provider:
            raise _no_provider(wanted, llm)
    if (problem := missing_requirement(llm, provider, probe)) is not None:
        raise _name_model(problem, model and wanted)
    if (
        llm.entries[provider].needs == "key"
    ):  # a file, a local tag or another vendor's name stays as it is written
        model = normalize_model_name(model)
    return ModelChoice(provider, model or _default(llm, provider, probe))


def _split(wanted: str, llm: LLMSettings) -> tuple[str, str]:
    if wanted in llm.entries:
        return wanted, ""
    head, slash, rest = wanted.partition("/")
    if slash and head in llm.entries and rest.strip():
        return head, rest
    if slash and (head in llm.entries or not llm.provider):
        message = _describe_mistake(wanted, head, llm)
        raise UsageError(Failure(kind="usage", message=message, hint=_describe_form(llm)))
    return llm.provider, wanted


def _describe_mistake(wanted: str, provider: str, llm: LLMSettings) -> Text:
    import difflib  # when used

    if provider in llm.entries:
        return text("llm.no_model_part", name=wanted, provider=provider)
    near = difflib.get_close_matches(provider, llm.entries, 1, cutoff=0.7)
    if near:
        return text("llm.no_provider_near", name=provider, model=wanted, near=near[0])
    return text("llm.no_provider", name=provider, model=wanted)


def _describe_form(llm: LLMSettings) -> Text:
    """Return the form of a model's name, and the providers."""
    return text("llm.providers", names=joined("list", llm.entries))


def _name_model(problem: DaikuError, wanted: str) -> DaikuError:
    """Return the error with the name of the model that cannot be used, if there is a name."""
    if not wanted:
        return problem
    message = text("llm.cannot_use", name=wanted, why=problem.failure.message)
    return type(problem)(problem.failure.model_copy(update={"message": message}))


def _owner(model: str, llm: LLMSettings) -> str:
    """The maker of a known model, where there is a key for it."""
    from daiku.models.catalogue import find_model, normalize_model_name  # when used

    entry = find_model(normalize_model_name(model)) if model else None
    return entry.provider if entry is not None and _has_key(llm.of(entry.provider)) else ""


def _has_key(settings: ProviderSettings) -> bool:
    named = {name.lower() for name in settings.headers}
    return bool(settings.api_key.get_secret_value()) or not named.isdisjoint({"authorization", "x-api-key"})


def usable(llm: LLMSettings, provider: str, probe: Probe) -> bool:
    """Return whether the provider can be selected by default: it has a key, a running server or an editor."""
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
    """Return the error for what a provider lacks, as far as it is known without a request; None if nothing."""
    entry, settings = llm.entries[provider], llm.of(provider)
    match entry.needs:
        case "key" if not _has_key(settings) and not settings.base_url:
            named = settings.api_key_env
            message = text("llm.needs_key", service=entry.service(settings).label)
            hint = text("llm.set_key_in", name=named) if named else text("llm.set_key")
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


def _default(llm: LLMSettings, provider: str, probe: Probe) -> str:
    """The model where none is named. Raises LLMRequestError where a server has none."""
    entry, settings = llm.entries[provider], llm.of(provider)
    at_its_maker = entry.needs == "key" and not settings.base_url
    if entry.first_model is None or at_its_maker:
        return entry.default_model
    first = probe.first_model(provider) or entry.default_model
    if first:
        return first
    message = text("llm.no_answer_or_model", service=entry.service(settings).label)
    raise LLMRequestError(Failure(kind="no_provider", message=message, hint=entry.how))


def _no_provider(wanted: str, llm: LLMSettings) -> DaikuError:
    """Return the error for a machine without a usable provider, with how to get one."""
    keys = (entry.key_env[0] for entry in PROVIDERS.values() if entry.needs == "key")
    servers = (entry.label for entry in PROVIDERS.values() if entry.needs == "server")
    hint = text("llm.key_or_server", keys=joined("list", keys), servers=joined("list", servers))
    if wanted:
        hint = joined("sentences", [_describe_form(llm), hint])
    problem = LLMRequestError(Failure(kind="no_provider", message=text("llm.no_model"), hint=hint))
    return _name_model(problem, wanted)
