"""Which provider and model a name means, and what to do where none can be used."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from daiku.domain.config import PROVIDERS, LLMSettings, ProviderSettings
from daiku.domain.errors import DaikuError, Failure, LLMAuthError, LLMRequestError, UsageError
from daiku.llm.catalogue import DEFAULT_MODELS, known, normalize_model_name

ORDER = ("anthropic", "openai", "gemini", "ollama", "lmstudio", "compatible", "editor")
"""The providers that are tried where none is set; a script is never played unasked."""

LABELS = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "gemini": "Gemini",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "compatible": "The compatible server",
    "editor": "The editor",
    "scripted": "A script",
}
_KEYED = {"anthropic", "openai", "gemini"}
_ADDRESSED = {"ollama", "lmstudio", "compatible"}
_HOW = {
    "ollama": "Start it with `ollama serve` and fetch a model, for example `ollama pull qwen3`.",
    "lmstudio": "Start LM Studio, load a model and start its server (Developer tab).",
    "compatible": "Set llm.compatible.base_url, for example http://127.0.0.1:8000/v1.",
    "editor": "Use Daiku inside VS Code with a model of its own, or choose another provider.",
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A provider and a model; `model` "" where the provider itself chooses (the editor)."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is there to choose from: `first_model(provider)` asks a server, None where it does not answer."""

    first_model: Callable[[str], str | None]
    has_editor: bool = False


def settings_of(llm: LLMSettings, provider: str) -> ProviderSettings:
    """The settings of one provider."""
    found = getattr(llm, provider)
    assert isinstance(found, ProviderSettings)
    return found


def resolve_model(llm: LLMSettings, name: str, around: Surroundings) -> ModelChoice:
    """What `name` means: `provider/model`, a model, a provider, or "" for what the settings say.

    Raises UsageError for an unknown provider, LLMError (no_provider, auth) with how to get one.
    """
    wanted = name.strip() or llm.model.strip()
    provider, model = _split(wanted, llm)
    if not provider:
        provider = _owner(model, llm) or next((p for p in ORDER if usable(llm, p, around)), "")
        if not provider:
            raise no_provider()
    if (problem := why_not(llm, provider, around)) is not None:
        raise problem
    if provider in _KEYED:  # a file, a local tag or another vendor's name stays as it is written
        model = normalize_model_name(model)
    return ModelChoice(provider, model or _default(llm, provider, around))


def _split(wanted: str, llm: LLMSettings) -> tuple[str, str]:
    if wanted in PROVIDERS:
        return wanted, ""
    head, slash, rest = wanted.partition("/")
    if slash and head in PROVIDERS:
        return head, rest
    if slash and not llm.provider:
        near = difflib.get_close_matches(head, PROVIDERS, 1)
        raise UsageError(
            Failure(
                kind="usage",
                message=f"There is no provider “{head}”{f'; did you mean {near[0]}?' if near else '.'}",
                hint=f"A model is named provider/name; the providers are {', '.join(PROVIDERS)}.",
            )
        )
    return llm.provider, wanted


def _owner(model: str, llm: LLMSettings) -> str:
    """The maker of a known model, where there is a key for it."""
    entry = known(normalize_model_name(model)) if model else None
    return entry.provider if entry is not None and _has_key(settings_of(llm, entry.provider)) else ""


def _has_key(settings: ProviderSettings) -> bool:
    named = {name.lower() for name in settings.headers}
    return bool(settings.api_key.get_secret_value()) or not named.isdisjoint({"authorization", "x-api-key"})


def usable(llm: LLMSettings, provider: str, around: Surroundings) -> bool:
    """True where a call has a chance: a key, a server that has a model, an editor."""
    if provider in _KEYED:
        return _has_key(settings_of(llm, provider))
    if provider == "compatible" and not settings_of(llm, provider).base_url:
        return False
    if provider in _ADDRESSED:
        return around.first_model(provider) is not None
    return why_not(llm, provider, around) is None


def why_not(llm: LLMSettings, provider: str, around: Surroundings) -> DaikuError | None:
    """Why a provider that was asked for cannot be used, as far as it is known without asking it."""
    settings = settings_of(llm, provider)
    label = LABELS[provider]
    if provider in _KEYED and not _has_key(settings) and not settings.base_url:
        how = f"Set {settings.api_key_env}" if settings.api_key_env else "Set a key"
        message = f"{label} needs a key and none is set."
        hint = f"{how}, or run “Daiku: Set API Key”."
        return LLMAuthError(Failure(kind="auth", message=message, hint=hint))
    if provider == "compatible" and not settings.base_url.strip():
        message = "The provider “compatible” needs the address of its server."
        return UsageError(Failure(kind="usage", message=message, hint=_HOW[provider]))
    if provider == "editor" and not around.has_editor:
        message = "No editor lends its models here."
        return LLMRequestError(Failure(kind="no_provider", message=message, hint=_HOW[provider]))
    return None


def _default(llm: LLMSettings, provider: str, around: Surroundings) -> str:
    """The model where none is named. Raises LLMRequestError where a server has none."""
    served = provider in _ADDRESSED or (provider == "openai" and settings_of(llm, provider).base_url)
    if served and (first := around.first_model(provider)):
        return first
    if provider in _ADDRESSED:
        raise LLMRequestError(
            Failure(
                kind="no_provider",
                message=f"{LABELS[provider]} does not answer, or has no model.",
                hint=_HOW[provider],
            )
        )
    return DEFAULT_MODELS.get(provider, "")


def no_provider() -> LLMRequestError:
    """Nothing can be used: how to get something."""
    return LLMRequestError(
        Failure(
            kind="no_provider",
            message="There is no model to work with: no key is set and no local server answers.",
            hint="Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama or LM Studio; "
            "`daiku doctor` shows what is missing.",
        )
    )
