"""Wire types of `initialize`, of models, tools, and agents, and of diagnostics."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import JsonObject, Localizable, Wire
from daiku.domain.errors import Failure
from daiku.domain.servers import ServerStatus
from daiku.domain.tools import Effect
from daiku.texts.text import NO_TEXT, Text


class ModelOffer(Wire):
    """A selectable model; `id` is `provider/name`. Tokens are 0 if unknown."""

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
    """Status of a provider, with the error if it is unusable."""

    provider: str
    usable: bool
    error: Failure | None = None
    origin: str = ""
    """The package that provides it, with its version; empty for built-in providers."""


class ModelsResult(Localizable):
    models: tuple[ModelOffer, ...]
    providers: tuple[ProviderState, ...]
    selected: str | None = None
    """The `id` that requests without `model` use; absent if no provider is usable."""


class ToolInfo(Wire):
    name: str
    description: str
    parameters: JsonObject
    effect: Effect
    origin: str = ""
    """The package that provides it, with its version; empty for built-in tools."""


class ServerState(Localizable):
    """Status of a configured MCP server; this request starts none. The tools are those of its last run."""

    name: str
    status: ServerStatus
    tools: tuple[str, ...] = ()
    why: Text = NO_TEXT
    hint: Text = NO_TEXT


class ToolsResult(Localizable):
    tools: tuple[ToolInfo, ...]
    servers: tuple[ServerState, ...] = ()


class DoctorFinding(Localizable):
    """A finding of the diagnostics.

    `mend` says what to do about it. `action` is a button that a client may offer. `command` is for a
    terminal, where the user sees it before it runs.
    """

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
    """The package that provides it, with its version; empty for built-in agents."""


class AgentsResult(Wire):
    agents: tuple[AgentInfo, ...]


class ClientOffer(Wire):
    """Capabilities of the client (`initializationOptions.client`)."""

    approvals: bool = False
    language_model: bool = False
    editor: bool = False
    commands: bool = False
    """True if the client registers the commands itself, so that the server does not announce them."""
    locale: str | None = None


class InitializationOptions(Wire):
    """Initialization options. `settings` has the shape of the TOML file (PROTOCOL 2)."""

    settings: JsonObject | None = None
    client: ClientOffer | None = None
    trusted: bool | None = None
    """False: the workspace's settings file may not loosen anything. Absent: it may if `daiku config trust` was
    run for the folder."""


class ServerOffer(Wire):
    """Capabilities of the server (`capabilities.experimental.daiku` of the initialize result)."""

    version: str
    protocol: int
    methods: tuple[str, ...]
    commands: tuple[str, ...]
