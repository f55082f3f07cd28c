"""The services that runs use: stores, tools, models, the workspace; built once in `daiku.app`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from daiku.core.guard.guard import Policy
from daiku.core.ports import Checkpoints, Editor, Grants, Workspace
from daiku.core.run.budget import Quote
from daiku.domain.config import ToolProtocol
from daiku.domain.messages import ModelEvent, ModelRequest
from daiku.domain.runs import ApprovalMode, Mode
from daiku.llm.families import ModelTraits
from daiku.settings.config import Config
from daiku.tools.files.seen import SeenTexts
from daiku.tools.mcp import McpServers
from daiku.tools.registry import ToolRegistry
from daiku.trace.journal import Journal
from daiku.workspace.outputs import Outputs


class Model(Protocol):
    """A resolved model: retries, fallback and prices are behind it."""

    @property
    def name(self) -> str:
        """`provider/model`, as people see it."""
        ...

    @property
    def context(self) -> int:
        """Its window in tokens; 0 where unknown."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """What follows from its family: how it edits best, how it is spoken to."""
        ...

    @property
    def price_step(self) -> int:
        """Prompt tokens above which it costs more; 0 where it does not."""
        ...

    @property
    def tool_protocol(self) -> ToolProtocol:
        """How it is told of tools: by its service, or in a text form of ours."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...

    def quote(self, request: ModelRequest) -> Quote:
        """What the call can come to at worst, a fallback's price included."""
        ...


@dataclass(frozen=True, slots=True)
class RunServices:
    """`model` resolves a name ("" = settings) and raises LLMError or UsageError with what to do;
    `policy` is the guard's policy for a run's mode and approvals, and whether a person is there."""

    config: Config
    journal: Journal
    registry: ToolRegistry
    workspace: Workspace
    checkpoints: Checkpoints
    grants: Grants
    model: Callable[[str], Model]
    policy: Callable[[Mode, ApprovalMode, bool], Policy]
    editor: Editor | None = None
    traces: Path | None = None
    """The folder of trace files; None writes none."""
    worktrees: Path | None = None
    """The folder of copies that are worked in side by side; None: there are none."""
    outputs: Outputs | None = None
    """Where whole outputs of commands are kept; None: they are not."""
    servers: McpServers | None = None
    seen: SeenTexts = field(default_factory=SeenTexts)
    """What models saw of files: the file tools ask it before a whole file is overwritten."""
    trusted: bool = True
    """Whether the person trusts the workspace: the rules of strangers are data."""

    @property
    def workspace_key(self) -> str:
        """The name under which grants and sessions of this workspace are kept."""
        return str(self.workspace.roots[0]) if self.workspace.roots else ""

    @property
    def roots(self) -> tuple[Path, ...]:
        return self.workspace.roots
