"""Every setting as a frozen type, with its default (PROTOCOL 2); `daiku.settings` reads them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from daiku.domain.runs import RunLimits

PROVIDERS = ("anthropic", "openai", "gemini", "ollama", "lmstudio", "compatible", "editor", "scripted")
ProviderName = Literal[
    "anthropic", "openai", "gemini", "ollama", "lmstudio", "compatible", "editor", "scripted"
]
ToolProtocol = Literal["native", "action_list", "command"]
Answer = Literal["allow", "ask", "deny"]


class Section(BaseModel):
    """One table of the settings file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Price(Section):
    """USD per million tokens."""

    input: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ProviderSettings(Section):
    """How to reach one provider. `api_key` is read from the environment variable `api_key_env`
    or handed over by the editor; a file never holds it. `price` by model name."""

    base_url: str = ""
    api_key_env: str = ""
    api_key: SecretStr = SecretStr("")
    context_length: int = Field(default=0, ge=0)
    price: dict[str, Price] = {}
    headers: dict[str, str] = {}
    api: Literal["auto", "chat", "responses"] = "auto"
    tool_protocol: ToolProtocol = "native"
    effort: Literal["", "none", "low", "medium", "high"] = ""
    first_token_seconds: int = Field(default=1800, ge=1)
    """Silence allowed before the first byte; a local model may need twenty minutes."""
    idle_seconds: int = Field(default=300, ge=1)
    """Silence allowed between two bytes."""


class LLMSettings(Section):
    provider: Literal["", ProviderName] = ""
    model: str = ""
    fallback_model: str = ""
    anthropic: ProviderSettings = ProviderSettings(api_key_env="ANTHROPIC_API_KEY")
    openai: ProviderSettings = ProviderSettings(api_key_env="OPENAI_API_KEY")
    gemini: ProviderSettings = ProviderSettings(api_key_env="GEMINI_API_KEY")
    ollama: ProviderSettings = ProviderSettings()
    lmstudio: ProviderSettings = ProviderSettings()
    compatible: ProviderSettings = ProviderSettings(api_key_env="COMPATIBLE_API_KEY")
    editor: ProviderSettings = ProviderSettings()
    scripted: ProviderSettings = ProviderSettings()


class ApprovalSettings(Section):
    read: Answer = "allow"
    edit: Answer = "ask"
    command: Answer = "ask"
    network: Answer = "ask"
    mcp: Answer = "ask"
    commands_allow: tuple[str, ...] = ()
    commands_deny: tuple[str, ...] = ()


class SandboxSettings(Section):
    mode: Literal["auto", "strict", "off"] = "auto"
    network: bool = False
    write: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    """Names of variables that commands are given besides those that tools are known to need."""


class GuardrailSettings(Section):
    similarity_warn: float = Field(default=0.28, ge=0, le=1)
    similarity_block: float = Field(default=0.40, ge=0, le=1)
    regex_blocks: tuple[str, ...] = ()


class RouterSettings(Section):
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    model: str = ""


class PlaybookSettings(Section):
    enabled: bool = True
    learn: Literal["off", "review", "auto"] = "review"
    top_k: int = Field(default=10, ge=1)
    alpha: float = Field(default=0.5, ge=0, le=1)
    min_confidence: float = Field(default=0.3, ge=0, le=1)
    token_budget: int = Field(default=4000, ge=0)


class ResearchSettings(Section):
    engine: Literal["duckduckgo", "brave", "tavily", "searxng"] = "duckduckgo"
    base_url: str = ""
    api_key_env: str = ""


class TraceSettings(Section):
    otlp_endpoint: str = ""


class StorageSettings(Section):
    database_url: str = ""


class WorkLabels(Section):
    todo: str = "coding agent"
    processing: str = "coding agent processing"
    done: str = "coding agent done"
    paused: str = "coding agent paused"
    failed: str = "coding agent failed"
    stopped: str = "coding agent stopped"


class WorkSettings(Section):
    labels: WorkLabels = WorkLabels()


class GitHubSettings(Section):
    api_url: str = "https://api.github.com"
    token_env: str = "GITHUB_TOKEN"  # noqa: S105  # the name of a variable, not a secret
    repositories: tuple[str, ...] = ()
    bot: str = ""


class GitLabSettings(Section):
    api_url: str = "https://gitlab.com/api/v4"
    token_env: str = "GITLAB_TOKEN"  # noqa: S105  # the name of a variable, not a secret
    projects: tuple[str, ...] = ()
    bot: str = ""


class MCPSignIn(Section):
    """For a server that does not let clients register themselves: what its owner gave out."""

    client_id: str = ""
    client_secret: str = ""
    """`${NAME}` takes it from the environment."""
    client_metadata_url: str = ""
    scope: str = ""


class MCPServerSettings(Section):
    """A server by its command (stdio) or its url (HTTP). `env` and `headers` may hold `${NAME}`."""

    mcp_server_name: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    system_prompt: str = ""
    oauth: MCPSignIn = MCPSignIn()


class PluginSettings(Section):
    """`allow` names the packages whose tools may be loaded; only the person's own settings count."""

    allow: tuple[str, ...] = ()


class Config(Section):
    """All settings, merged and checked."""

    llm: LLMSettings = LLMSettings()
    limits: RunLimits = RunLimits()
    approvals: ApprovalSettings = ApprovalSettings()
    sandbox: SandboxSettings = SandboxSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    router: RouterSettings = RouterSettings()
    playbook: PlaybookSettings = PlaybookSettings()
    research: ResearchSettings = ResearchSettings()
    trace: TraceSettings = TraceSettings()
    storage: StorageSettings = StorageSettings()
    work: WorkSettings = WorkSettings()
    github: GitHubSettings = GitHubSettings()
    gitlab: GitLabSettings = GitLabSettings()
    mcp_servers: tuple[MCPServerSettings, ...] = ()
    plugins: PluginSettings = PluginSettings()
