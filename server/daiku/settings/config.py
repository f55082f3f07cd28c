"""All settings as one frozen type, with their defaults (PROTOCOL 2)."""

from pathlib import Path
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
from daiku.models.table import LLMSettings


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
    generator: AgentSettings = AgentSettings()
    sections: AgentSettings = AgentSettings()
    draft: AgentSettings = AgentSettings()
    style: AgentSettings = AgentSettings()
    eval: AgentSettings = AgentSettings()
    lessons: AgentSettings = AgentSettings()
    reflector: AgentSettings = AgentSettings()
    curator: AgentSettings = AgentSettings()

    def model_of(self, agent: str) -> str:
        """Return the model name set for the agent called `agent`, empty if none is."""
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
    reflections: int = Field(default=1, ge=0, le=5)
    """How often a model looks at a run that has ended, each time with what it said before; 0: lessons come by rule alone."""
    reflection_cost: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """Dollars that this may cost after one run, apart from the run's own limits; 0: no limit."""
    reflection_tokens: int = Field(default=50_000, ge=0)
    """Tokens that it may use; 0: no limit."""
    reflection_seconds: int = Field(default=30, ge=1, le=300)
    """How long it may take; a command on the terminal ends no later than that."""


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

    def place(self, home: Path) -> Path | str:
        """Where conversations and a person's answers are kept: a file, or the address of a server. Raises UsageError."""
        from daiku.store.opening import parse_place  # when used

        return parse_place(self.database_url, home / "daiku.db")

    def memory(self, home: Path) -> Path | str:
        """Return where memories are: on the same server, or in a file beside that of the conversations."""
        place = self.place(home)
        if isinstance(place, str):
            return place
        return home / "memory.db" if not self.database_url else place.with_name(f"{place.stem}-memory.db")


class WorkLabels(Section):
    todo: str = "coding agent"
    processing: str = "coding agent processing"
    done: str = "coding agent done"
    paused: str = "coding agent paused"
    failed: str = "coding agent failed"
    stopped: str = "coding agent stopped"


class WorkSettings(Section):
    """How work items are worked while no person watches. No workspace's own file sets any of it but the labels."""

    labels: WorkLabels = WorkLabels()
    network: tuple[str, ...] = ()
    """Hosts by name that a run on an item may reach, each only by its whole name."""
    max_rounds: int = Field(default=1000, ge=0)
    max_cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Dollars that one item may cost; 0: no limit."""
    parse_retries: int = Field(default=5, ge=0)
    """How often a reply in which nothing can be read is asked for again (R2.54)."""
    verifications: int = Field(default=2, ge=0)
    """Rounds of work on what the last look at everything finds (S2P.10); 0: it is only told."""
    review_rounds: int = Field(default=5, ge=0)
    """Rounds of work on what reviews and red checks of its request say of an item; 0: people mend it."""
    poll_seconds: int = Field(default=60, ge=1)
    """Between two looks for new items, and at one that is under way."""
    git_name: str = "Daiku"
    git_email: str = "daiku@localhost"
    """Whose commits those of items are."""


class GitHubSettings(Section):
    api_url: str = "https://api.github.com"
    token_env: str = "GITHUB_TOKEN"  # noqa: S105  # the name of a variable, not a secret
    repositories: tuple[str, ...] = ()
    bot: str = ""
    app_id: int = 0
    """A GitHub App instead of a token; its private key, or the path of it, is in the variable `app_key_env`."""
    app_key_env: str = "GITHUB_APP_KEY"
    installation_id: int = 0
    """0: the one that the repository belongs to."""


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
