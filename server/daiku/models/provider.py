"""Provider interface, and the entry that describes a provider in the table."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from daiku.dataclass import dataclass, field
from daiku.domain.config import ProviderSettings
from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import NO_TEXT, Text

if TYPE_CHECKING:
    from daiku.models.transport.service import Service


class Provider(Protocol):
    """One model service. Its methods raise only `LLMError` kinds and CancelledError.

    `stream` yields deltas as they arrive and ends with exactly one `Reply`; it does not retry.
    Cancelling the consumer closes the connection.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...

    async def models(self) -> tuple[ModelInfo, ...]:
        """List the models on offer, with context windows if the service reports them."""
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Count tokens with the service's endpoint; None if it has none."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProviderDeps:
    """Dependencies of providers besides their settings."""

    bridge: LanguageModelBridge | None = None
    script_folders: tuple[Path, ...] = ()
    demo: Path | None = None
    locale: str = "en"


Needs = Literal["key", "server", "address", "editor", "script"]
"""What a provider requires: an API key, a server at the usual address, a server whose address is in the settings, an
editor that offers models, or a script."""


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """Description of a provider.

    Its settings, environment variables, model choice, `daiku models`, `daiku doctor`, and the editor's settings are
    derived from it.
    """

    name: str
    label: str
    """Name in lists and settings."""
    needs: Needs
    make: Callable[[Service, ProviderSettings, ProviderDeps], Provider]
    address: Callable[[str], str] = str
    """Completes a `base_url`; returns the default address for ""."""
    subject: Callable[[str], str] | None = None
    """Returns the subject of sentences about it by its host name, if that is not the label."""
    how: Text = NO_TEXT
    """Setup instructions; empty if an API key is enough."""
    key_env: tuple[str, ...] = ()
    """Environment variables for its key; the first is the default of `api_key_env`."""
    address_env: str = ""
    """Environment variable for its address."""
    read_address: Callable[[str], str] = str
    """Converts that variable's value to an address."""
    first_model: Callable[[str, Mapping[str, str]], str | None] | None = None
    """Asks the server at an address, with headers, for its default model; None if it has none."""
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Further request options (temperature, …), each with the service's name for it (R1.40)."""
    default_model: str = ""
    default_context: int = 0
    """Context window in tokens that it allocates if the settings name none."""
    versioned: bool = False
    """True if its paths begin with `/v1`, which a `base_url` may lack or duplicate."""
    writes_calls: Callable[[str], bool] = lambda _: False
    """Returns True if models at a `base_url` may write calls into their text although tools are offered, as servers
    of open models do."""

    @property
    def settings(self) -> ProviderSettings:
        """Default settings."""
        return ProviderSettings(api_key_env=next(iter(self.key_env), ""))

    def is_own_service(self, base_url: str) -> bool:
        """Return True if `base_url` is the service of the models' maker, which knows every field that we send."""
        own, given = urlsplit(self.address("")), urlsplit(self.address(base_url))
        return self.needs == "key" and own.hostname == given.hostname

    def service(self, settings: ProviderSettings) -> Service:
        """Return the Service for these settings, as used in error messages."""
        from daiku.models.transport.service import Service  # when used

        address = self.address(settings.base_url)
        return Service(
            name=self.name,
            label=self.subject(str(urlsplit(address).hostname)) if self.subject else self.label,
            address=address,
            key_env=settings.api_key_env or self.settings.api_key_env,
            start_hint=self.how,
            secrets=(settings.api_key.get_secret_value(),),
        )


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A provider and a model; `model` is "" if the provider chooses (the editor)."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider
