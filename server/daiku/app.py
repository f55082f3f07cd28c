"""The composition root: builds the App from settings and an editor; only here are the parts connected."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from daiku.agents.table import delegates
from daiku.core.guard.guard import Policy
from daiku.core.guard.redact import redactor
from daiku.core.ports import Editor, Grants, LanguageModelBridge, Workspace
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.tools import ToolSpec
from daiku.llm.model import Models, ProviderModels
from daiku.prompts import prompts_folder
from daiku.runs import Runs, RunServices
from daiku.runs.nested.worktrees import sweep
from daiku.runs.review.decisions import Reviews
from daiku.settings import secrets_of
from daiku.settings.config import Config
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.files.seen import SeenTexts
from daiku.tools.mcp import McpContext, McpServers
from daiku.tools.plugins import Plugin, load_plugins
from daiku.tools.registry import ToolRegistry
from daiku.tools.sandbox import sandbox_state
from daiku.tools.table import builtin_tools
from daiku.trace.consent import ConsentStore
from daiku.trace.grants import GrantStore
from daiku.trace.journal import Journal
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import is_closed
from daiku.workspace.outputs import Outputs

log = logging.getLogger(__name__)

DATABASE = "daiku.db"


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
    reviews: Reviews
    plugins: tuple[Plugin, ...] = ()

    async def models(self) -> tuple[ProviderModels, ...]:
        """What every provider offers; one that cannot be reached comes with why."""
        return await self.llm.list()

    def tools(self) -> tuple[ToolSpec, ...]:
        """All tools, built in and plugged in."""
        return self.registry.specs()

    async def aclose(self) -> None:
        """Let go of runs (they stay resumable), connections and files."""
        await self.runs.stop_all()
        await self.servers.aclose()
        await self.llm.aclose()
        self.journal.close()
        self.grants.close()


def build(
    config: Config,
    *,
    workspace: Workspace,
    home: Path,
    editor: Editor | None = None,
    bridge: LanguageModelBridge | None = None,
    trusted: bool = True,
    own: bool = True,
    locale: str = "en",
) -> App:
    """Wire everything up; touches the disk, not the network. `own`: the workspace's texts are known to be
    the person's own, not a stranger's. `locale` is the person's, such as `ja`. Raises UsageError, OSError."""
    sweep(home / "worktrees")
    redact = redactor(secrets_of(config, os.environ))
    journal = Journal(home / DATABASE, redact)
    grants = GrantStore(home / DATABASE)
    checkpoints = CheckpointStore(home / "checkpoints", workspace, open_sessions=journal.unfinished_sessions)
    outputs = Outputs(home / "outputs", redact)
    outputs.sweep()
    seen = SeenTexts()
    tools = builtin_tools(home, editor=editor is not None, seen=seen, agents=delegates())
    registry = ToolRegistry(tools, redact=redact)
    plugins = _plug_in(config, registry)
    demo = prompts_folder() / "demo.jsonl"
    llm = Models(config.llm, bridge=bridge, script_folders=workspace.roots, demo=demo, locale=locale)
    consents = ConsentStore(home / DATABASE)
    mcp = McpContext(workspace.roots, _key_of(workspace), home, consents)
    servers = McpServers(config.mcp_servers, registry, mcp, denied=_why_no_servers(config, trusted))
    services = RunServices(
        config=config,
        journal=journal,
        registry=registry,
        workspace=workspace,
        checkpoints=checkpoints,
        grants=grants,
        model=llm.resolve,
        policy=partial(_policy, config, workspace, grants, trusted, own),
        editor=editor,
        traces=home / "traces",
        worktrees=home / "worktrees",
        outputs=outputs,
        servers=servers,
        trusted=trusted,
        seen=seen,
    )
    runs = Runs(services)
    stores = (journal, grants, consents, checkpoints)
    return App(config, workspace, runs, *stores, registry, llm, servers, Reviews(runs, checkpoints), plugins)


def _plug_in(config: Config, registry: ToolRegistry) -> tuple[Plugin, ...]:
    """Add the tools of allowed packages, names of ours left to ours; how every package stands."""
    plugins = load_plugins(config.plugins.allow)
    registry.add(tool for tool in plugins.tools if tool.name not in registry.names)
    for plugin in plugins.found:
        if plugin.status == "broken":
            log.warning("plug-in %s (%s): %s", plugin.package, plugin.entry, plugin.why)
    return plugins.found


def _why_no_servers(config: Config, trusted: bool) -> Text:
    if not trusted:
        return text("guard.untrusted")
    return text("guard.settings_deny_mcp") if config.approvals.mcp == "deny" else NO_TEXT


def _policy(
    config: Config,
    workspace: Workspace,
    grants: Grants,
    trusted: bool,
    own: bool,
    mode: Mode,
    approvals: ApprovalMode,
    attended: bool,
) -> Policy:
    return Policy(
        approvals=config.approvals,
        mode=mode,
        approval_mode=approvals,
        trusted=trusted,
        own=own,
        headless=not attended,
        sandbox=sandbox_state(config.sandbox),
        network=config.sandbox.network,
        granted=partial(grants.lookup, _key_of(workspace)),
        resolve=_resolver(workspace),
        closed=partial(is_closed, workspace),
        roots=tuple(str(root) for root in workspace.roots),
        home=str(Path.home()),
    )


def _key_of(workspace: Workspace) -> str:
    """The name under which grants and consents of this workspace are kept."""
    return str(workspace.roots[0]) if workspace.roots else ""


def _resolver(workspace: Workspace) -> Callable[[str], str | None]:
    def resolve(path: str) -> str | None:
        try:
            return workspace.relative(workspace.locate(path))
        except Exception:  # noqa: BLE001  # whatever is wrong with a path, it is not inside
            return None

    return resolve
