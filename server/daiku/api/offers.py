"""Wire types of `initialize`, of the available models, tools and agents, and of the doctor's findings."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import JsonObject, Localizable, Wire
from daiku.domain.errors import Failure
from daiku.domain.servers import ServerStatus
from daiku.domain.tools import Effect
from daiku.texts.text import NO_TEXT, Text


class ModelOffer(Wire):
    """A model that can be chosen; `id` is `provider/name`. Tokens are 0 where unknown."""

    id: str
    provider: str
    name: str
    context: int = 0
    max_output: int = 0
    tools: bool = True
    images: bool = False
    thinking: bool = False
    trait: str = ""


class ProviderState(Localizable):
    """A provider, and why it cannot be used where it cannot."""

    provider: str
    usable: bool
    error: Failure | None = None
    origin: str = ""
    """The package that brings it, with its version; empty for Daiku's own."""


class ModelsResult(Localizable):
    models: tuple[ModelOffer, ...]
    providers: tuple[ProviderState, ...]
    selected: str | None = None
    """The `id` that a request without `model` uses; absent where no provider is usable."""


class ToolInfo(Wire):
    name: str
    description: str
    parameters: JsonObject
    effect: Effect
    origin: str = ""
    """As for a provider."""


class ServerState(Localizable):
    """How a configured MCP server stands; none is started by asking. Its tools are those that it
    offered when it last ran."""

    name: str
    status: ServerStatus
    tools: tuple[str, ...] = ()
    why: Text = NO_TEXT
    hint: Text = NO_TEXT


class ToolsResult(Localizable):
    tools: tuple[ToolInfo, ...]
    servers: tuple[ServerState, ...] = ()


class DoctorFinding(Localizable):
    """One thing that was looked at. `mend` says what to do about it; a client may offer it as a button: the
    `action` is its own, the `command` is for a terminal, where the person sees it before it runs."""

    area: Literal[
        "daiku", "programs", "settings", "sandbox", "models", "mcp", "tools", "memory", "trace", "work"
    ]
    state: Literal["good", "note", "bad"]
    what: Text
    mend: Text = NO_TEXT
    action: Literal["key", "model", "settings", "trust", "log"] | None = None
    command: str = ""


class DoctorResult(Localizable):
    findings: tuple[DoctorFinding, ...]


class AgentInfo(Wire):
    name: str
    description: str
    tools: tuple[str, ...] = ()
    origin: str = ""
    """As for a provider."""


class AgentsResult(Wire):
    agents: tuple[AgentInfo, ...]


class ClientOffer(Wire):
    """`initializationOptions.client`: what the client does itself."""

    approvals: bool = False
    language_model: bool = False
    editor: bool = False
    commands: bool = False
    """True: the client registers the commands itself; the server does not announce them a second time."""
    locale: str | None = None


class InitializationOptions(Wire):
    """`settings` has the shape of the TOML file (PROTOCOL 2)."""

    settings: JsonObject | None = None
    client: ClientOffer | None = None
    trusted: bool | None = None
    """False: the workspace is not trusted, its own settings file may loosen nothing. Absent: as in the
    terminal, only the settings file of a folder that was trusted by `daiku config trust` may."""


class ServerOffer(Wire):
    """`capabilities.experimental.daiku` of the initialize answer."""

    version: str
    protocol: int
    methods: tuple[str, ...]
    commands: tuple[str, ...]
