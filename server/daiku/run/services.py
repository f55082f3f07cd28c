"""Services that runs use: stores, tools, models, and the workspace; built once in `daiku.app`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import DaikuError
from daiku.domain.held import Bullet
from daiku.domain.runs import ApprovalMode, Mode
from daiku.models.families import OVERRIDES, Model
from daiku.prompts import Prompts
from daiku.settings.config import Config
from daiku.team.agent import HANDOFF, Agent
from daiku.team.known import Agents
from daiku.tools.files.seen import SeenTexts
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Tool
from daiku.trace.sessions import SessionStore
from daiku.workspace.outputs import Outputs

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Policy
    from daiku.run.rules.outside import (
        Advises,
        Checkpoints,
        Editor,
        Grants,
        Guard,
        Remembers,
        Router,
        Workspace,
    )
    from daiku.tools.mcp import McpServers
    from daiku.trace.telemetry.logger import TraceLogger


class RecordsPendingRuns(Protocol):
    """Record of a folder's runs that are pending for learning or reflection. Methods raise DaikuError."""

    def add(self, run: str, session: str) -> None:
        """Record that a run started or resumed."""
        ...

    def remove_session(self, session: str, besides: Collection[str] = ()) -> None:
        """Remove the runs of a session, except those in `besides`."""
        ...

    def sessions(self) -> tuple[str, ...]:
        """Return the sessions that have such runs, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class RunServices:
    """What runs use.

    `model` resolves a name ("": the settings' model); raises LLMError, UsageError. `policy` builds the
    guard's policy.
    """

    config: Config
    journal: SessionStore
    registry: ToolRegistry
    workspace: Workspace
    checkpoints: Checkpoints
    grants: Grants
    model: Callable[[str], Model]
    policy: Callable[[Mode, ApprovalMode, bool], Policy]
    editor: Editor | None = None
    trace: TraceLogger | None = None
    """Receives every chunk, for trace files and spans. None: tracing is off."""
    worktrees: Path | None = None
    """Folder for copies of the project in which agents work in parallel. None: no copies."""
    outputs: Outputs | None = None
    """Store of complete command outputs. None: they are not stored."""
    servers: McpServers | None = None
    seen: SeenTexts = field(default_factory=SeenTexts)
    """File texts that models have read; checked before a file is overwritten."""
    trusted: bool = True
    """False: the workspace's rule files are treated as data."""
    agents: Agents = field(default_factory=Agents)
    """Agents that can be requested by name."""
    guardrails: tuple[Guard, ...] = ()
    """Guardrails of every run, in addition to its agent's."""
    router: Router | None = None
    """Chooses the agent for a request that names none."""
    memory: Remembers | None = None
    """Memory of agents that have none of their own."""
    playbooks: Advises | None = None
    """Lessons of earlier runs, for the repository and for the user. None: none are read."""
    learning: Callable[[str], Sequence[Bullet]] | None = None
    """Learns from a session, in a thread, and returns new lessons. None: learning is off."""
    pending_learning: RecordsPendingRuns | None = None
    """Runs that are pending for learning; None if learning is off."""
    pending_reflections: RecordsPendingRuns | None = None
    """Runs that are pending for a reflection by a model; None if learning is off."""
    redact: Callable[[str], str] = str
    """Redacts secrets in a model's review of a run. Journaled text is redacted separately."""
    prompts: Prompts = field(default_factory=Prompts)
    """Prompt templates of agents."""

    def of(self, agent: Agent) -> RunServices:
        """Return the services for a run of `agent`, with its own tools and model."""
        registry = self.registry.bottom
        if agent.own_tools or agent.handoffs:
            registry = registry.with_own(agent, lambda: (*agent.own_tools, *own_handoff(agent)))
        if not isinstance(agent.model, str):
            return replace(self, registry=registry, model=partial(_resolve_with_own, agent.model, self.model))
        return self if registry is self.registry else replace(self, registry=registry)

    def model_of(self, agent: Agent, name: str) -> Model:
        """Return the run's model: the agent's, else `name`, else the settings'. Raises LLMError, UsageError."""
        if OVERRIDES.model is not None:
            return OVERRIDES.model
        if not isinstance(agent.model, str):
            return agent.model
        return self.model(agent.model or name or self.config.agents.model_of(agent.name))

    def model_below(self, asker: Agent, agent: Agent, name: str) -> str:
        """Return the model name for a run of `agent` nested in one of `asker` that uses `name`.

        A model in the settings for the agent comes first.
        """
        configured = self.config.agents.model_of
        if not agent.model and configured(agent.name):
            return self._full_name(configured(agent.name))
        is_askers_own = configured(asker.name) and name == self._full_name(configured(asker.name))
        return self._full_name("") if is_askers_own else name

    def _full_name(self, name: str) -> str:
        """Return a model's full name, or `name` unchanged if it is unknown."""
        try:
            return self.model(name).name
        except DaikuError:
            return name

    @property
    def workspace_key(self) -> str:
        """Key under which grants and sessions of this workspace are stored."""
        return str(self.workspace.roots[0]) if self.workspace.roots else ""

    @property
    def roots(self) -> tuple[Path, ...]:
        return self.workspace.roots


def _resolve_with_own(model: Model, others: Callable[[str], Model], name: str) -> Model:
    """Return `model` if `name` names it, else what `name` resolves to."""
    return model if name == model.name else others(name)


def resolve_with_default(model: Model | None, resolve: Callable[[str], Model], name: str) -> Model:
    """Return `model` unless `name` resolves to another one, or tests override all models."""
    if OVERRIDES.model is not None:
        return OVERRIDES.model
    if model is None:
        return resolve(name)
    if name in ("", model.name):
        return model
    try:
        return resolve(name)
    except DaikuError:  # a name recorded by a run with another default model
        return model


def own_handoff(agent: Agent) -> tuple[Tool, ...]:
    """Return the hand-off tool of an agent with an explicit list of agents, limited to that list."""
    from daiku.tools.work.handoff import build_handoff_tools  # when used

    descriptions = {each.name: each.description for each in agent.handoffs}
    return tuple(tool for tool in build_handoff_tools(descriptions) if descriptions and tool.name == HANDOFF)
