"""All settings as one frozen type, with their defaults (PROTOCOL 2)."""

from typing import Literal

from pydantic import Field

from daiku.domain.config import (
    ApprovalSettings,
    MCPServerSettings,
    ResearchSettings,
    SandboxSettings,
    Section,
)
from daiku.domain.runs import RunLimits
from daiku.llm.table import LLMSettings


class AgentSettings(Section):
    """`model`: the agent's own, named as `llm.model` is; empty: that of its run, else `llm.model`."""

    model: str = ""


class AgentsSettings(Section):
    """Each agent that asks a model, by its name."""

    coordinator: AgentSettings = AgentSettings()
    planner: AgentSettings = AgentSettings()
    researcher: AgentSettings = AgentSettings()
    explorer: AgentSettings = AgentSettings()
    coder: AgentSettings = AgentSettings()
    runner: AgentSettings = AgentSettings()
    reporter: AgentSettings = AgentSettings()
    committer: AgentSettings = AgentSettings()
    sections: AgentSettings = AgentSettings()
    draft: AgentSettings = AgentSettings()
    style: AgentSettings = AgentSettings()
    eval: AgentSettings = AgentSettings()
    lessons: AgentSettings = AgentSettings()

    def model_of(self, agent: str) -> str:
        """The name of the model that is set for the agent called `agent`; empty where none is."""
        found = getattr(self, agent, None)
        return found.model.strip() if isinstance(found, AgentSettings) else ""


class GuardrailSettings(Section):
    similarity_warn: float = Field(default=0.28, ge=0, le=1)
    similarity_block: float = Field(default=0.40, ge=0, le=1)
    regex_blocks: tuple[str, ...] = ()
    references: tuple[str, ...] = (".daiku/references/**",)
    """Files of the workspace that what is written must not be like, as patterns of their paths."""


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


class MemorySettings(Section):
    """What is kept over sessions. It is off by default: then nothing is remembered, and nothing that was is read."""

    enabled: bool = False
    embedder: str = ""
    """`provider/model`, which is then sent the texts; empty: texts are compared by their words."""
    user: str = ""
    """Whose memories they are in a database that several people share; empty: the login name."""
    top_k: int = Field(default=5, ge=1, le=50)
    token_budget: int = Field(default=1000, ge=0)


class TraceSettings(Section):
    otlp_endpoint: str = ""
    content: bool = False


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


class PluginSettings(Section):
    """`allow` names the packages whose tools may be loaded; only the person's own settings count."""

    allow: tuple[str, ...] = ()


class PromptSettings(Section):
    """`language`: that of what models are told; the person is answered in their own, whatever it is."""

    language: Literal["en", "ja"] = "en"


class Config(Section):
    """All settings, merged and checked."""

    llm: LLMSettings = LLMSettings()
    agents: AgentsSettings = AgentsSettings()
    limits: RunLimits = RunLimits()
    approvals: ApprovalSettings = ApprovalSettings()
    sandbox: SandboxSettings = SandboxSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    router: RouterSettings = RouterSettings()
    playbook: PlaybookSettings = PlaybookSettings()
    research: ResearchSettings = ResearchSettings()
    memory: MemorySettings = MemorySettings()
    trace: TraceSettings = TraceSettings()
    storage: StorageSettings = StorageSettings()
    work: WorkSettings = WorkSettings()
    github: GitHubSettings = GitHubSettings()
    gitlab: GitLabSettings = GitLabSettings()
    mcp_servers: tuple[MCPServerSettings, ...] = ()
    plugins: PluginSettings = PluginSettings()
    prompts: PromptSettings = PromptSettings()
