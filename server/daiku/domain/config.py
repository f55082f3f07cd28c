"""Settings types that other packages use, with their defaults."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

ToolProtocol = Literal["native", "action_list", "command"]
Answer = Literal["allow", "ask", "deny"]


class Section(BaseModel):
    """One table of the settings file; unknown keys are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Price(Section):
    """Prices in USD per million tokens."""

    input: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ProviderSettings(Section):
    """Connection settings of one provider.

    `api_key` comes from the environment variable `api_key_env` or from the editor, never from a file.
    `price` maps model names to prices.
    """

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
    """Timeout in seconds until the first byte; local models may take twenty minutes."""
    idle_seconds: int = Field(default=300, ge=1)
    """Timeout in seconds between two bytes."""

    def bearer_headers(self) -> dict[str, str]:
        """Return the configured headers, with the API key as a bearer token if there is one."""
        key = self.api_key.get_secret_value()
        return {**self.headers, **({"Authorization": f"Bearer {key}"} if key else {})}


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
    """Environment variables passed to commands in addition to those that known tools need."""


class ResearchSettings(Section):
    engine: Literal["duckduckgo", "brave", "tavily", "searxng"] = "duckduckgo"
    base_url: str = ""
    api_key_env: str = ""


class MCPSignIn(Section):
    """OAuth client data for an MCP server without dynamic client registration."""

    client_id: str = ""
    client_secret: str = ""
    """`${NAME}` reads it from the environment."""
    client_metadata_url: str = ""
    scope: str = ""


class MCPServerSettings(Section):
    """An MCP server, by command (stdio) or URL (HTTP). `env` and `headers` may contain `${NAME}`."""

    mcp_server_name: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    system_prompt: str = ""
    oauth: MCPSignIn = MCPSignIn()
