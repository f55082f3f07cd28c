"""The composition root: builds the App from settings and an editor; only here are the parts connected."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field
from daiku.domain.tools import ToolSpec
from daiku.guard.guardrails.configured import configured_guardrails
from daiku.guard.rules.redact import Redactor
from daiku.models.families import Model
from daiku.models.model import Models, ProviderModels
from daiku.playbook.background import with_learning
from daiku.plugins.entries import Plugged
from daiku.prompts import prompts_folder
from daiku.run.ports.policy import run_policy
from daiku.run.rules.outside import (
    Editor,
    Guard,
    LanguageModelBridge,
    Remembers,
    Router,
    Terminals,
    Workspace,
)
from daiku.run.runs import Runs
from daiku.run.services import RunServices, given_first
from daiku.settings import secrets_of
from daiku.settings.config import Config
from daiku.team.agent import Agent
from daiku.team.known import Agents
from daiku.team.prompts import build_prompts
from daiku.team.routing.configured import build_router
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.files.seen import SeenTexts
from daiku.tools.mcp import McpContext, McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Tool
from daiku.trace.consent import ConsentStore
from daiku.trace.grants import GrantStore
from daiku.trace.journal import Journal
from daiku.trace.stores import Stores, open_stores
from daiku.trace.telemetry.opening import end_of_trace, open_trace
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.outputs import Outputs

if TYPE_CHECKING:
    from daiku.edits.review.decisions import Reviews
    from daiku.guard.guardrails.references import WorkspaceReferences
    from daiku.guard.rules.guardrails.fingerprints import Fingerprints
    from daiku.memory.memory import Memory
    from daiku.run.rules.outside import Advises
    from daiku.tools.documents.desk import DocumentDesk, Evaluations, References
    from daiku.trace.telemetry.logger import TraceLogger


@dataclass(frozen=True, slots=True)
class Given:
    """Parts that whoever builds an App brings as values, in place of what settings and disk say.

    `model` is asked wherever no other one is named. `stores` and `trace` stay open when the App is closed. `environ` is where
    secrets are looked for that must not be shown. Without `plugins` no installed package is looked at. Without
    `builtin` the tools of Daiku itself are not there: none of the agents names one."""

    model: Model | None = None
    agents: Agents = field(default_factory=Agents)
    tools: tuple[Tool, ...] = ()
    guardrails: tuple[Guard, ...] = ()
    router: Router | None = None
    memory: Remembers | None = None
    stores: Stores | None = None
    trace: TraceLogger | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    plugins: bool = True
    builtin: bool = True
    folder: Path | None = None
    """Where MCP servers start when no folder is open; None: in the person's home."""
    allowed_in: tuple[Path, ...] = ()
    """The folders for which the person allowed things for always, and where MCP servers start; (): the workspace's."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything that a front needs, for one workspace and one set of settings."""

    config: Config
    workspace: Workspace
    runs: Runs
    journal: Journal
    grants: GrantStore
    consents: ConsentStore
    checkpoints: CheckpointStore
    registry: ToolRegistry
    llm: Models
    servers: McpServers
    make_reviews: Callable[[], Reviews]
    plugged: Plugged = Plugged()
    stores: Stores | None = None
    """Those that it closes."""
    end_trace: Callable[[], object] = bool
    """Writes what is left of the trace; it waits for the disk, and a moment for a collector."""
    memory: Memory | None = None
    """The one that it has opened, as the settings say."""
    evaluations: Evaluations | None = None

    @property
    def reviews(self) -> Reviews:
        """Decides on the changes of runs; made when it is first asked for."""
        return self.make_reviews()

    async def models(self) -> tuple[ProviderModels, ...]:
        """What every provider offers; one that cannot be reached comes with why."""
        return await self.llm.list()

    def tools(self) -> tuple[ToolSpec, ...]:
        """All tools, built in and plugged in."""
        return self.registry.specs()

    def agents(self) -> tuple[Agent, ...]:
        """All agents that can be asked by name, built in and plugged in."""
        from daiku.team.table import AGENTS  # when used

        return tuple({**AGENTS, **self.runs.services.agents.own}.values())

    async def aclose(self) -> None:
        """Let go of runs (they stay resumable), connections and files."""
        await self.runs.stop_all()
        await self.servers.aclose()
        await self.llm.aclose()
        try:
            await asyncio.to_thread(self.end_trace)
        except RuntimeError:  # the program is ending: it has no threads any more
            self.end_trace()
        if self.stores is not None:
            self.stores.close()
        if self.memory is not None:
            await self.memory.aclose()


def build(
    config: Config,
    *,
    workspace: Workspace,
    home: Path,
    editor: Editor | None = None,
    bridge: LanguageModelBridge | None = None,
    terminals: Terminals | None = None,
    trusted: bool = True,
    own: bool = True,
    locale: str = "en",
    given: Given = Given(),
) -> App:
    """Wire everything up; touches the disk, not the network. `own`: the workspace's texts are known to be
    the person's own, not a stranger's. `locale` is the person's, such as `ja`. Raises UsageError, OSError."""
    config, plugged, agents = _plug_in(config, given)
    redact = Redactor(secrets_of(config, given.environ))
    stores = given.stores or open_stores(config.storage.place(home), redact, home / "traces")
    kept = CheckpointStore(home / "checkpoints", workspace, open_sessions=stores.journal.unfinished_sessions)
    documents = _documents(config, workspace, home, redact, seen := SeenTexts(), stores.evaluations)
    playbooks = _playbooks(config, workspace, stores, trusted=trusted)
    registry = _registry(home, given, plugged, agents, terminals, documents, redact, playbooks, editor)
    llm = _models(config, workspace, bridge, locale)
    mcp = McpContext(given.allowed_in or workspace.roots, home, stores.consents, given.folder)
    servers = McpServers(config.mcp_servers, registry, mcp, denied=_why_no_servers(config, trusted))
    memory = _open_memory(config, workspace, home, redact)
    services = RunServices(
        config=config,
        journal=stores.journal,
        registry=registry,
        workspace=workspace,
        checkpoints=kept,
        grants=stores.grants,
        model=partial(given_first, given.model, llm.resolve),
        policy=partial(run_policy, config, workspace, stores.grants, mcp.key, trusted, own),
        editor=editor,
        trace=_trace(config, stores, given),
        worktrees=home / "worktrees",
        outputs=Outputs(home / "outputs", redact).swept(),
        servers=servers,
        trusted=trusted,
        seen=seen,
        agents=agents,
        prompts=build_prompts(config, workspace, own=own),
        guardrails=_guardrails(config, workspace, given),
        router=given.router if given.router is not None else build_router(config.router),
        memory=given.memory if given.memory is not None else memory,
        playbooks=playbooks,
    )
    return _app(services, home, llm, stores, kept, servers, plugged, memory, given, documents)


def _plug_in(config: Config, given: Given) -> tuple[Config, Plugged, Agents]:
    if not given.plugins:
        return config, Plugged(), given.agents
    from daiku.plugins.kinds import plug_in  # when used

    config, plugged = plug_in(config, given.environ)
    return config, plugged, Agents({**plugged.agents, **given.agents.own})


def _guardrails(config: Config, workspace: Workspace, given: Given) -> tuple[Guard, ...]:
    """Those of the settings, then those that are given."""
    secrets = secrets_of(config, given.environ)
    return (*configured_guardrails(config.guardrails, workspace.roots, secrets), *given.guardrails)


def _registry(
    home: Path,
    given: Given,
    plugged: Plugged,
    agents: Agents,
    terminals: Terminals | None,
    documents: DocumentDesk,
    redact: Callable[[str], str],
    playbooks: Advises | None,
    editor: Editor | None,
) -> ToolRegistry:
    if not given.builtin:
        return ToolRegistry((*plugged.tools, *given.tools), redact=redact)
    from daiku.team.table import delegates  # when used
    from daiku.tools.table import builtin_tools  # when used

    tools = builtin_tools(
        home,
        editor=bool(editor),
        seen=documents.seen,
        agents=delegates(agents.own),
        documents=documents,
        terminals=terminals,
        playbooks=playbooks,
        redact=redact,
    )
    return ToolRegistry((*tools, *plugged.tools, *given.tools), redact=redact)


def _app(
    services: RunServices,
    home: Path,
    llm: Models,
    stores: Stores,
    checkpoints: CheckpointStore,
    servers: McpServers,
    plugged: Plugged,
    memory: Memory | None,
    given: Given,
    documents: DocumentDesk,
) -> App:
    if any((home / name).is_dir() for name in ("worktrees", "trials", "starts")):
        from daiku.run.nested.worktrees import sweep_copies  # when used

        sweep_copies(home)
    runs = Runs(with_learning(services, stores, documents.redact, outside=lambda: servers.any_allowed))

    @cache
    def reviews() -> Reviews:
        from daiku.edits.review.decisions import Reviews  # when used

        return Reviews(runs, checkpoints)

    return App(
        config=services.config,
        workspace=services.workspace,
        runs=runs,
        journal=stores.journal,
        grants=stores.grants,
        consents=stores.consents,
        checkpoints=checkpoints,
        registry=services.registry,
        llm=llm,
        servers=servers,
        make_reviews=reviews,
        plugged=plugged,
        stores=stores if given.stores is None else None,
        end_trace=end_of_trace(services.trace, given.trace),
        memory=memory,
        evaluations=documents.evaluations,
    )


def _documents(
    config: Config,
    workspace: Workspace,
    home: Path,
    redact: Callable[[str], str],
    seen: SeenTexts,
    evaluations: Evaluations,
) -> DocumentDesk:
    from daiku.tools.documents.desk import DocumentDesk  # when used

    def references() -> References:
        from daiku.memory.opening import open_references  # when used

        return open_references(config, _key_of(workspace.roots), home)

    @cache
    def files() -> WorkspaceReferences:
        from daiku.guard.guardrails.references import WorkspaceReferences  # when used

        return WorkspaceReferences(workspace.roots, config.guardrails.references)

    def known() -> Mapping[str, Fingerprints]:
        from daiku.guard.guardrails.references import corpus  # when used

        return {**corpus(), **files().read()}

    return DocumentDesk(redact, evaluations, references, known, seen)


def _playbooks(config: Config, workspace: Workspace, stores: Stores, *, trusted: bool) -> Advises | None:
    """What runs are told of playbooks; a database that is in memory begins with none."""
    if not config.playbook.enabled or not stores.lasting:
        return None
    from daiku.playbook.playbooks import playbooks_in  # when used

    return playbooks_in(stores.database, workspace.roots, config, trusted=trusted)


def _models(config: Config, workspace: Workspace, bridge: LanguageModelBridge | None, locale: str) -> Models:
    demo = prompts_folder() / "demo.jsonl"
    return Models(config.llm, bridge=bridge, script_folders=workspace.roots, demo=demo, locale=locale)


def _open_memory(
    config: Config, workspace: Workspace, home: Path, redact: Callable[[str], str]
) -> Memory | None:
    """The memory that the settings ask for."""
    if not config.memory.enabled:
        return None
    from daiku.memory.opening import open_memory  # when used: it loads embeddings and search

    return open_memory(config, _key_of(workspace.roots), home, redact)


def _trace(config: Config, stores: Stores, given: Given) -> TraceLogger | None:
    told = config.trace
    return given.trace or open_trace(stores.traces, told.otlp_endpoint, told.content, given.environ)


def _why_no_servers(config: Config, trusted: bool) -> Text:
    denied = text("guard.settings_deny_mcp") if config.approvals.mcp == "deny" else NO_TEXT
    return denied if trusted else text("guard.untrusted")


def _key_of(roots: tuple[Path, ...]) -> str:
    """The name under which what belongs to these folders is kept."""
    return str(roots[0]) if roots else ""
