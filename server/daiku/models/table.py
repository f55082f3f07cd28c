"""Table of model providers, one entry each; settings, model choice, and editor UI are derived from it.

To add a provider, write its module (or, for a new protocol, its package) in `daiku.models`, then add an entry here
and its field to `LLMSettings`. `npm run gen` writes what the editor shows of it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, PrivateAttr, SecretStr
from pydantic_core import PydanticKnownError

from daiku.domain.config import ProviderSettings, Section
from daiku.domain.errors import Failure, LLMRequestError
from daiku.models.provider import Provider, ProviderDeps, ProviderEntry
from daiku.models.transport.addresses import (
    base_url_normalizer,
    normalize_anthropic_address,
    normalize_ollama_address,
    openai_url_normalizer,
    parse_ollama_host,
)
from daiku.models.transport.local import find_lmstudio_model, find_ollama_model, find_openai_model
from daiku.models.transport.service import Service
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import text

_OPENAI_HOST = lazy(r"^(?:https?://)?[\w.-]*\.(?:openai\.com|azure\.com)(?=[:/]|$)", re.IGNORECASE)


# Each provider is imported on first use: httpx2 alone would add 65 ms to the start of the server.
def _open_anthropic(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.anthropic.provider import AnthropicProvider  # lazy: see above

    return AnthropicProvider(service, settings)


def _open_openai(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.openai.provider import OpenAIProvider  # lazy: see above

    return OpenAIProvider(service, settings)


def _open_gemini(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.gemini.provider import GeminiProvider  # lazy: see above

    return GeminiProvider(service, settings)


def _open_ollama(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.ollama.provider import OllamaProvider  # lazy: see above

    return OllamaProvider(service, settings, OLLAMA.default_context)


def _open_lmstudio(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.openai.provider import LMStudioProvider  # lazy: see above

    return LMStudioProvider(service, settings)


def _open_editor(service: Service, settings: ProviderSettings, deps: ProviderDeps) -> Provider:
    from daiku.models.editor import EditorProvider  # lazy: see above

    assert deps.bridge is not None, "without an editor the choice refuses this provider"
    return EditorProvider(service, settings, deps.bridge)


def _open_scripted(_service: Service, _settings: ProviderSettings, deps: ProviderDeps) -> Provider:
    from daiku.models.scripted import ScriptedProvider  # lazy: see above

    return ScriptedProvider((*deps.script_folders, Path.cwd()), deps.demo, deps.locale)


SAMPLING = MappingProxyType({name: name for name in ("temperature", "top_p", "stop", "seed")})
"""Sampling options that servers of open models accept, under their usual names."""

ANTHROPIC = ProviderEntry(
    name="anthropic",
    label="Anthropic",
    needs="key",
    make=_open_anthropic,
    key_env=("ANTHROPIC_API_KEY",),
    address_env="ANTHROPIC_BASE_URL",
    address=normalize_anthropic_address,
    options={"temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"},
    default_model="claude-sonnet-5-5",
)
OPENAI = ProviderEntry(
    name="openai",
    label="OpenAI",
    needs="key",
    make=_open_openai,
    key_env=("OPENAI_API_KEY",),
    address_env="OPENAI_BASE_URL",
    address=openai_url_normalizer("https://api.openai.com/v1"),
    versioned=True,
    first_model=find_openai_model,
    options={"temperature": "temperature", "top_p": "top_p"},
    default_model="gpt-6.1-sol",
    writes_calls=lambda base_url: bool(base_url.strip()) and not _OPENAI_HOST.search(base_url.strip()),
)
GEMINI = ProviderEntry(
    name="gemini",
    label="Google Gemini",
    subject=lambda _: "Gemini",
    needs="key",
    make=_open_gemini,
    key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    address_env="GEMINI_BASE_URL",
    address=base_url_normalizer("https://generativelanguage.googleapis.com"),
    options={"temperature": "temperature", "top_p": "topP", "stop": "stopSequences", "seed": "seed"},
    default_model="gemini-3.8-flash",
)
OLLAMA = ProviderEntry(
    name="ollama",
    label="Ollama",
    needs="server",
    make=_open_ollama,
    how=text("llm.start_ollama"),
    address_env="OLLAMA_HOST",
    read_address=parse_ollama_host,
    address=normalize_ollama_address,
    first_model=find_ollama_model,
    options=SAMPLING,
    # The server's default (4,096) silently truncates the start of long prompts. A model's full context window
    # may not fit into memory.
    default_context=32_768,
    writes_calls=lambda _: True,
)
LMSTUDIO = ProviderEntry(
    name="lmstudio",
    label="LM Studio",
    needs="server",
    make=_open_lmstudio,
    how=text("llm.start_lmstudio"),
    address_env="LMSTUDIO_BASE_URL",
    address=openai_url_normalizer("http://127.0.0.1:1234/v1"),
    versioned=True,
    first_model=find_lmstudio_model,
    options=SAMPLING,
    writes_calls=lambda _: True,
)
COMPATIBLE = ProviderEntry(
    name="compatible",
    label="OpenAI-compatible",
    subject=lambda host: text("llm.the_server", host=host),
    needs="address",
    make=_open_openai,
    how=text("llm.start_compatible"),
    key_env=("COMPATIBLE_API_KEY",),
    address=openai_url_normalizer(),
    versioned=True,
    first_model=find_openai_model,
    options=SAMPLING,
    writes_calls=lambda _: True,
)
EDITOR = ProviderEntry(
    name="editor",
    label="Editor",
    subject=lambda _: text("llm.the_editor"),
    needs="editor",
    make=_open_editor,
    how=text("llm.use_vscode"),
)
SCRIPTED = ProviderEntry(
    name="scripted",
    label="Script",
    subject=lambda _: text("llm.a_script"),
    needs="script",
    make=_open_scripted,
    default_model="demo",
)


def _check_provider_name(name: str) -> str:
    if name and name not in PROVIDERS:
        *most, last = [f"'{known}'" for known in ("", *PROVIDERS)]
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(most)} or {last}"})
    return name


class LLMSettings(Section):
    """Model choice and settings of each provider; providers are tried and listed in this order."""

    provider: Annotated[str, AfterValidator(_check_provider_name)] = ""
    model: str = ""
    fallback_model: str = ""
    anthropic: Annotated[ProviderSettings, ANTHROPIC] = ANTHROPIC.settings
    openai: Annotated[ProviderSettings, OPENAI] = OPENAI.settings
    gemini: Annotated[ProviderSettings, GEMINI] = GEMINI.settings
    ollama: Annotated[ProviderSettings, OLLAMA] = OLLAMA.settings
    lmstudio: Annotated[ProviderSettings, LMSTUDIO] = LMSTUDIO.settings
    compatible: Annotated[ProviderSettings, COMPATIBLE] = COMPATIBLE.settings
    editor: Annotated[ProviderSettings, EDITOR] = EDITOR.settings
    scripted: Annotated[ProviderSettings, SCRIPTED] = SCRIPTED.settings
    plugins: dict[str, ProviderSettings] = {}
    """Settings of plug-in providers by name."""
    _plugin_entries: dict[str, ProviderEntry] = PrivateAttr(default_factory=dict[str, ProviderEntry])
    _mistake: Failure | None = PrivateAttr(default=None)

    @property
    def entries(self) -> Mapping[str, ProviderEntry]:
        """All providers, the built-in ones first."""
        return {**PROVIDERS, **self._plugin_entries} if self._plugin_entries else PROVIDERS

    def of(self, provider: str) -> ProviderSettings:
        """Return the settings of one provider."""
        if provider in self._plugin_entries:
            return self.plugins.get(provider, self._plugin_entries[provider].settings)
        settings = getattr(self, provider)
        assert isinstance(settings, ProviderSettings)
        return settings

    def refusing(self, mistake: Failure) -> "LLMSettings":
        """Return a copy for commands that use no model: choosing a model raises `mistake`."""
        copy = self.model_copy()
        copy._mistake = mistake  # a private attribute of a copy that nobody has seen yet
        return copy

    def check(self) -> None:
        """Raise LLMRequestError if these settings are invalid."""
        if self._mistake is not None:
            raise LLMRequestError(self._mistake)

    def with_plugins(self, entries: Mapping[str, ProviderEntry], environ: Mapping[str, str]) -> "LLMSettings":
        """Return a copy with plug-in providers, their keys read from environment variables."""
        settings_with_keys: dict[str, ProviderSettings] = {}
        for name, entry in entries.items():
            settings = self.plugins.get(name, entry.settings)
            variables = (settings.api_key_env,) if settings.api_key_env else entry.key_env
            key = next((environ[variable] for variable in variables if environ.get(variable)), "")
            settings_with_keys[name] = (
                settings.model_copy(update={"api_key": SecretStr(key)}) if key else settings
            )
        copy = self.model_copy(update={"plugins": {**self.plugins, **settings_with_keys}})
        copy._plugin_entries = dict(entries)  # a private attribute of a copy that nobody has seen yet
        return copy


PROVIDERS = {
    name: entry
    for name, field in LLMSettings.model_fields.items()
    for entry in field.metadata
    if isinstance(entry, ProviderEntry)
}
