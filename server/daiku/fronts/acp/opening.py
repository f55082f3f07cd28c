"""Build the App for a session's folders, and convert the client's MCP servers to settings."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.config import MCPServerSettings
from daiku.domain.errors import Failure, UsageError
from daiku.guard.rules.redact import Redactor
from daiku.library.fronts import App, build
from daiku.logs import start_logging
from daiku.run.rules.outside import Terminals, Workspace
from daiku.settings import home, load, secrets_of
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import locale_of
from daiku.texts.text import Text, text

McpServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


@dataclass(frozen=True, slots=True)
class Opened:
    """An App, with notices about the settings that it was built from."""

    app: App
    notices: tuple[Text, ...] = ()


def roots_of(cwd: str, more: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders of a session. Raises UsageError if one is not absolute or does not exist."""
    roots: list[Path] = []
    for name in (cwd, *more):
        path = Path(name)
        if not path.is_absolute() or not path.is_dir():
            raise UsageError(Failure(kind="usage", message=text("acp.no_folder", path=repr(name))))
        roots.append(path)
    return tuple(dict.fromkeys(roots))


def open_folder(
    workspace: Workspace,
    servers: Sequence[MCPServerSettings] = (),
    *,
    terminals: Terminals | None = None,
    model: str = "",
) -> Opened:
    """Build the App of a workspace.

    The guard trusts the folder because the user opened it; its settings file needs `daiku config trust`.
    `servers` of the client need the user's consent. Raises UsageError, OSError.
    """
    environ, folder = os.environ, workspace.roots[0]
    state = home(environ)
    trusted = is_trusted(state, folder)
    overrides: JsonObject | None = {"llm": {"model": model}} if model else None
    loaded = load(workspace=folder, trusted=trusted, environ=environ, overrides=overrides)
    config = loaded.config
    if servers:
        config = config.model_copy(update={"mcp_servers": (*config.mcp_servers, *servers)})
    start_logging(state, Redactor(secrets_of(config, environ)))
    language = locale_of(environ)
    app = build(config, workspace=workspace, home=state, terminals=terminals, own=trusted, locale=language)
    recovered = app.journal.recovered
    return Opened(app, (*loaded.notices, recovered) if recovered else loaded.notices)


def server_settings(server: McpServer) -> MCPServerSettings:
    """Return the settings of an MCP server that a client passes; it needs the user's consent like all others.

    Raises UsageError for a transport that was not announced.
    """
    match server:
        case McpServerStdio(name=name, command=command, args=args, env=env):
            variables = {item.name: item.value for item in env}
            return MCPServerSettings(mcp_server_name=_name(name), command=(command, *args), env=variables)
        case HttpMcpServer(name=name, url=url, headers=headers):
            header_values = {item.name: item.value for item in headers}
            return MCPServerSettings(mcp_server_name=_name(name), url=url, headers=header_values)
        case _:
            message = text("acp.server_kind", name=repr(server.name), kind=server.type)
            raise UsageError(Failure(kind="usage", message=message))


def _name(name: str) -> str:
    """Return `name` in the form of a tool namespace."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-_.")[:64]
