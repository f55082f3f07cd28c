"""What a provider is: a stream of model events, a list of models, a token count; and its entry in the table."""

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
        """What is on offer, with context windows where the service tells."""
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """From the service's counting endpoint; None where it has none."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProviderDeps:
    """What providers are made with besides their settings."""

    bridge: LanguageModelBridge | None = None
    script_folders: tuple[Path, ...] = ()
    demo: Path | None = None
    locale: str = "en"


Needs = Literal["key", "server", "address", "editor", "script"]
"""What has to be there before a provider can be used: its key, its server at the usual address, a server whose
address is in the settings, an editor that lends models, a script that is named."""


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """Everything that is particular to one provider. Its settings, its variables of the environment, the choice of
    a model, `daiku models`, `daiku doctor` and the editor's settings are derived from it."""

    name: str
    label: str
    """As lists and settings call it."""
    needs: Needs
    make: Callable[[Service, ProviderSettings, ProviderDeps], Provider]
    address: Callable[[str], str] = str
    """The whole address that `base_url` stands for, the usual one where it is empty."""
    subject: Callable[[str], str] | None = None
    """How a sentence about it begins where that is not its label, by the host where it runs."""
    how: Text = NO_TEXT
    """What a person does to get it going; empty where a key is all it takes."""
    key_env: tuple[str, ...] = ()
    """The variables of its key; the first is the default of `api_key_env`."""
    address_env: str = ""
    """The variable of its address."""
    read_address: Callable[[str], str] = str
    """That variable's value as an address."""
    first_model: Callable[[str, Mapping[str, str]], str | None] | None = None
    """The model that the server at an address answers with, asked with these headers; None where it has none."""
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What else may be asked of a reply (temperature, …), each with the service's name for it (R1.40)."""
    default_model: str = ""
    default_context: int = 0
    """Tokens of the window that it sets up where the settings name none."""
    versioned: bool = False
    """Its paths begin with `/v1`, which a `base_url` may lack or have once too often."""
    writes_calls: Callable[[str], bool] = lambda _: False
    """Whether the models at a `base_url` may write calls into their text although tools are offered: servers of
    open models do, services of the makers give calls apart."""

    @property
    def settings(self) -> ProviderSettings:
        """The default settings."""
        return ProviderSettings(api_key_env=next(iter(self.key_env), ""))

    def is_own_service(self, base_url: str) -> bool:
        """Whether `base_url` is the service of the models' maker, who knows every field that we may send."""
        own, there = urlsplit(self.address("")), urlsplit(self.address(base_url))
        return self.needs == "key" and own.hostname == there.hostname

    def service(self, settings: ProviderSettings) -> Service:
        """Return the Service description for these settings, as used in error messages."""
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
    """A provider and a model; `model` "" where the provider itself chooses (the editor)."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider
