"""Composition root: builds the App from settings and an editor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field
from daiku.domain.tools import ToolSpec
from daiku.guard.guardrails.configured import build_guardrails
from daiku.guard.rules.redact import Redactor
from daiku.models.families import Model
from daiku.models.model import Models, ProviderModels
from daiku.playbook.background import with_learning
from daiku.plugins.entries import Plugged
from daiku.prompts import find_prompts_folder
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
from daiku.run.services import RunServices, resolve_with_default
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
from daiku.trace.grants import ConsentStore, GrantStore
from daiku.trace.journal import Journal
from daiku.trace.stores import Stores, open_stores
from daiku.trace.telemetry.opening import closer_of_trace, open_trace
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
class AppParts:
    """Parts that replace what settings and the disk would supply.

    `model` is the default model. `stores` and `trace` stay open when the App is closed. `environ` is searched
    for secrets to redact. `plugins=False` loads no installed packages. `builtin=False` leaves out Daiku's own
    tools.
    """

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
    """Working folder of MCP servers when no folder is open. None: the home folder."""
    allowed_in: tuple[Path, ...] = ()
    """Folders whose permanent approvals apply and in which MCP servers start. (): the workspace's roots."""


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
    """Stores that `aclose` closes."""
    end_trace: Callable[[], object] = bool
    """Flushes the trace; blocks on the disk, and briefly on a collector."""
    memory: Memory | None = None
    """Memory opened from the settings; `aclose` closes it."""
    evaluations: Evaluations | None = None

    @property
    def reviews(self) -> Reviews:
        """Service that decides on the changes of runs; created on first use."""
        return self.make_reviews()

    async def models(self) -> tuple[ProviderModels, ...]:
        """Return the models of every provider; an unreachable provider has a reason."""
        return await self.llm.list()

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return all tools, built in and plugged in."""
        return self.registry.specs()

    def agents(self) -> tuple[Agent, ...]:
        """Return all agents that have a name, built in and plugged in."""
        from daiku.team.table import AGENTS  # when used

        return tuple({**AGENTS, **self.runs.services.agents.own}.values())

    async def aclose(self) -> None:
        """Stop runs so that they can be resumed, and close connections and files."""
        await self.runs.stop_all()
        await self.servers.aclose()
        await self.llm.aclose()
        try:
            await asyncio.to_thread(self.end_trace)
        except RuntimeError:  # the interpreter is shutting down and starts no threads
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
    own: bool = True,  # the workspace's prompt templates are the user's own
    locale: str = "en",  # the user's, such as "ja"
    parts: AppParts = AppParts(),
) -> App:
    """Build the App of a workspace from disk, without the network. Raises UsageError, OSError."""
    config, plugged, agents = _load_plugins(config, parts)
    redact = Redactor(secrets_of(config, parts.environ))
    stores = parts.stores or open_stores(config.storage.place(home), redact, home / "traces")
    edits = CheckpointStore(home / "checkpoints", workspace, open_sessions=stores.journal.unfinished_sessions)
    documents = _build_desk(config, workspace, home, redact, seen := SeenTexts(), stores.evaluations)
    playbooks = _open_playbooks(config, workspace, stores, trusted=trusted)
    registry = _build_registry(home, parts, plugged, agents, terminals, documents, redact, playbooks, editor)
    llm = _build_models(config, workspace, bridge, locale)
    mcp = McpContext(parts.allowed_in or workspace.roots, home, stores.consents, parts.folder)
    servers = McpServers(config.mcp_servers, registry, mcp, denied=_server_denial(config, trusted))
    memory = _open_memory(config, workspace, home, redact)
    services = RunServices(
        config=config,
        journal=stores.journal,
        registry=registry,
        workspace=workspace,
        checkpoints=edits,
        grants=stores.grants,
        model=partial(resolve_with_default, parts.model, llm.resolve),
        policy=partial(run_policy, config, workspace, stores.grants, mcp.key, trusted, own),
        editor=editor,
        trace=_make_trace(config, stores, parts),
        worktrees=home / "worktrees",
        outputs=Outputs(home / "outputs", redact).swept(),
        servers=servers,
        trusted=trusted,
        seen=seen,
        agents=agents,
        prompts=build_prompts(config, workspace, own=own),
        guardrails=_build_guardrails(config, workspace, parts),
        router=parts.router if parts.router is not None else build_router(config.router),
        memory=memory if parts.memory is None else parts.memory,
        playbooks=playbooks,
    )
    return _assemble(services, home, llm, stores, edits, servers, plugged, memory, parts, documents)


def _load_plugins(config: Config, parts: AppParts) -> tuple[Config, Plugged, Agents]:
    if not parts.plugins:
        return config, Plugged(), parts.agents
    from daiku.plugins.kinds import plug_in  # when used

    config, plugged = plug_in(config, parts.environ)
    return config, plugged, Agents({**plugged.agents, **parts.agents.own})


def _build_guardrails(config: Config, workspace: Workspace, parts: AppParts) -> tuple[Guard, ...]:
    """Return the guardrails of the settings, then those in `parts`."""
    secrets = secrets_of(config, parts.environ)
    return (*build_guardrails(config.guardrails, workspace.roots, secrets), *parts.guardrails)


def _build_registry(
    home: Path,
    parts: AppParts,
    plugged: Plugged,
    agents: Agents,
    terminals: Terminals | None,
    documents: DocumentDesk,
    redact: Callable[[str], str],
    playbooks: Advises | None,
    editor: Editor | None,
) -> ToolRegistry:
    if not parts.builtin:
        return ToolRegistry((*plugged.tools, *parts.tools), redact=redact)
    from daiku.team.table import list_delegates  # when used
    from daiku.tools.table import build_builtin_tools  # when used

    tools = build_builtin_tools(
        home,
        editor=bool(editor),
        seen_texts=documents.seen_texts,
        agents=list_delegates(agents.own),
        documents=documents,
        terminals=terminals,
        playbooks=playbooks,
        redact=redact,
    )
    return ToolRegistry((*tools, *plugged.tools, *parts.tools), redact=redact)


def _assemble(
    services: RunServices,
    home: Path,
    llm: Models,
    stores: Stores,
    checkpoints: CheckpointStore,
    servers: McpServers,
    plugged: Plugged,
    memory: Memory | None,
    parts: AppParts,
    documents: DocumentDesk,
) -> App:
    if any((home / name).is_dir() for name in ("worktrees", "trials", "starts")):
        from daiku.run.nested.worktrees import sweep_copies  # when used

        sweep_copies(home)
    runs = Runs(with_learning(services, stores, documents.redact, outside=lambda: servers.has_allowed))

    @cache
    def make_reviews() -> Reviews:
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
        make_reviews=make_reviews,
        plugged=plugged,
        stores=stores if parts.stores is None else None,
        end_trace=closer_of_trace(services.trace, parts.trace),
        memory=memory,
        evaluations=documents.evaluations,
    )


def _build_desk(
    config: Config,
    workspace: Workspace,
    home: Path,
    redact: Callable[[str], str],
    seen: SeenTexts,
    evaluations: Evaluations,
) -> DocumentDesk:
    from daiku.tools.documents.desk import DocumentDesk  # when used

    def make_references() -> References:
        from daiku.memory.opening import open_references  # when used

        return open_references(config, _workspace_key(workspace.roots), home)

    @cache
    def workspace_references() -> WorkspaceReferences:
        from daiku.guard.guardrails.references import WorkspaceReferences  # when used

        return WorkspaceReferences(workspace.roots, config.guardrails.references)

    def fingerprints() -> Mapping[str, Fingerprints]:
        from daiku.guard.guardrails.references import load_corpus  # when used

        return {**load_corpus(), **workspace_references().read()}

    return DocumentDesk(redact, evaluations, make_references, fingerprints, seen)


def _open_playbooks(config: Config, workspace: Workspace, stores: Stores, *, trusted: bool) -> Advises | None:
    """Return the playbooks that runs read; None if disabled or the database is in memory."""
    if not config.playbook.enabled or not stores.lasting:
        return None
    from daiku.playbook.playbooks import build_playbooks  # when used

    return build_playbooks(stores.database, workspace.roots, config, trusted=trusted)


def _build_models(
    config: Config, workspace: Workspace, bridge: LanguageModelBridge | None, locale: str
) -> Models:
    demo = find_prompts_folder() / "demo.jsonl"
    return Models(config.llm, bridge=bridge, script_folders=workspace.roots, demo=demo, locale=locale)


def _open_memory(
    config: Config, workspace: Workspace, home: Path, redact: Callable[[str], str]
) -> Memory | None:
    """Return the memory of the settings, or None if it is disabled."""
    if not config.memory.enabled:
        return None
    from daiku.memory.opening import open_memory  # when used: it loads embeddings and search

    return open_memory(config, _workspace_key(workspace.roots), home, redact)


def _make_trace(config: Config, stores: Stores, parts: AppParts) -> TraceLogger | None:
    settings = config.trace
    return parts.trace or open_trace(stores.traces, settings.otlp_endpoint, settings.content, parts.environ)


def _server_denial(config: Config, trusted: bool) -> Text:
    denied = text("guard.settings_deny_mcp") if config.approvals.mcp == "deny" else NO_TEXT
    return denied if trusted else text("guard.untrusted")


def _workspace_key(roots: tuple[Path, ...]) -> str:
    """Return the key under which data of these folders is stored."""
    return str(roots[0]) if roots else ""
