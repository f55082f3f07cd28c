"""The services that runs use: stores, tools, models, the workspace; built once in `daiku.app`."""

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
from daiku.trace.sessions import KeepsSessions
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


class NotesUnlearnt(Protocol):
    """The runs of one folder that began and were not learnt from yet. Its methods raise DaikuError."""

    def begins(self, run: str, session: str) -> None:
        """A run begins, or goes on."""
        ...

    def learnt(self, session: str, besides: Collection[str] = ()) -> None:
        """All runs of a session were learnt from, but for those in `besides`."""
        ...

    def sessions(self) -> tuple[str, ...]:
        """The sessions that have such runs, the newest first."""
        ...


@dataclass(frozen=True, slots=True)
class RunServices:
    """What runs use. `model` resolves a name ("" = settings), raising LLMError or UsageError; `policy`: the guard's."""

    config: Config
    journal: KeepsSessions
    registry: ToolRegistry
    workspace: Workspace
    checkpoints: Checkpoints
    grants: Grants
    model: Callable[[str], Model]
    policy: Callable[[Mode, ApprovalMode, bool], Policy]
    editor: Editor | None = None
    trace: TraceLogger | None = None
    """Takes every chunk, for trace files and spans; None: there are none."""
    worktrees: Path | None = None
    """The folder of copies that are worked in side by side; None: there are none."""
    outputs: Outputs | None = None
    """Where whole outputs of commands are kept; None: they are not."""
    servers: McpServers | None = None
    seen: SeenTexts = field(default_factory=SeenTexts)
    """What models saw of files: the file tools ask it before a whole file is overwritten."""
    trusted: bool = True
    """Whether the person trusts the workspace: the rules of strangers are data."""
    agents: Agents = field(default_factory=Agents)
    """Who can be asked for by name."""
    guardrails: tuple[Guard, ...] = ()
    """Those of every run, besides its agent's own."""
    router: Router | None = None
    """Says who works on a request that is not for anybody in particular."""
    memory: Remembers | None = None
    """The memory of every agent that has none of its own."""
    playbooks: Advises | None = None
    """What earlier work taught, of this repository and of its person; None: nothing is read."""
    learning: Callable[[str], Sequence[Bullet]] | None = None
    """Learns from a session, in a thread, and returns what is new. None: nothing is learnt."""
    unlearnt: NotesUnlearnt | None = None
    """The runs that were not learnt from yet, where there is learning."""
    pending_looks: NotesUnlearnt | None = None
    """The runs that a model has not looked at yet, where there is learning."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what a model says of a run; what is journaled goes without them anyway."""
    prompts: Prompts = field(default_factory=Prompts)
    """The templates that agents are told of their work by."""

    def of(self, agent: Agent) -> RunServices:
        """Return the services for a run of `agent`, with its own tools and model."""
        registry = self.registry.bottom
        if agent.own_tools or agent.handoffs:
            registry = registry.with_own(agent, lambda: (*agent.own_tools, *own_handoff(agent)))
        if not isinstance(agent.model, str):
            return replace(self, registry=registry, model=partial(_known_first, agent.model, self.model))
        return self if registry is self.registry else replace(self, registry=registry)

    def model_of(self, agent: Agent, name: str) -> Model:
        """Return the run's model: the agent's, else `name`, else that of the settings. Raises LLMError, UsageError."""
        if OVERRIDES.model is not None:
            return OVERRIDES.model
        if not isinstance(agent.model, str):
            return agent.model
        return self.model(agent.model or name or self.config.agents.model_of(agent.name))

    def model_below(self, asker: Agent, agent: Agent, name: str) -> str:
        """Return the model name for a run of `agent` below one of `asker` with model `name`: the settings' first."""
        set_for = self.config.agents.model_of
        if not agent.model and set_for(agent.name):
            return self._full_name(set_for(agent.name))
        only_theirs = set_for(asker.name) and name == self._full_name(set_for(asker.name))
        return self._full_name("") if only_theirs else name

    def _full_name(self, name: str) -> str:
        """A model's whole name; as it is where it means none, which is said when it is asked."""
        try:
            return self.model(name).name
        except DaikuError:
            return name

    @property
    def workspace_key(self) -> str:
        """The name under which grants and sessions of this workspace are kept."""
        return str(self.workspace.roots[0]) if self.workspace.roots else ""

    @property
    def roots(self) -> tuple[Path, ...]:
        return self.workspace.roots


def _known_first(model: Model, others: Callable[[str], Model], name: str) -> Model:
    """`model` by its name, else what the name means otherwise."""
    return model if name == model.name else others(name)


def given_first(model: Model | None, resolve: Callable[[str], Model], name: str) -> Model:
    """Return the model that was given, unless another one is named that can be asked, or tests override all."""
    if OVERRIDES.model is not None:
        return OVERRIDES.model
    if model is None:
        return resolve(name)
    if name in ("", model.name):
        return model
    try:
        return resolve(name)
    except DaikuError:  # as a run recorded it that another model began
        return model


def own_handoff(agent: Agent) -> tuple[Tool, ...]:
    """The hand-off tool of an agent that names whom it may ask; it can ask nobody else."""
    from daiku.tools.work.handoff import handoff_tools  # when used

    named = {each.name: each.description for each in agent.handoffs}
    return tuple(tool for tool in handoff_tools(named) if named and tool.name == HANDOFF)
