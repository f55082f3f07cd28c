"""The settings that other packages use, as frozen types with their defaults."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

ToolProtocol = Literal["native", "action_list", "command"]
Answer = Literal["allow", "ask", "deny"]


class Section(BaseModel):
    """One table of the settings file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


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

    def bearer_headers(self) -> dict[str, str]:
        """Return the headers of a request with the key as a bearer token."""
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
    """Names of variables that commands are given besides those that tools are known to need."""


class ResearchSettings(Section):
    engine: Literal["duckduckgo", "brave", "tavily", "searxng"] = "duckduckgo"
    base_url: str = ""
    api_key_env: str = ""


class MCPSignIn(Section):
    """OAuth client data from a server's owner, for a server without dynamic client registration."""

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
