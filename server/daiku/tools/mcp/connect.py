"""Connect to a server from its Launch; imported late, because the MCP SDK takes half a second to import."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.tools.mcp.connection import Hooks, McpConnection
from daiku.tools.mcp.launch import Launch
from daiku.tools.mcp.transport.oauth import sign_in
from daiku.tools.mcp.transport.server_transport import ServerTransport
from daiku.tools.tool import Ask


@dataclass(frozen=True, slots=True)
class Asks:
    """What a connection may want of a person: an answer in the middle of a call, a sign-in."""

    asker: Callable[[], Ask | None]
    changed: Callable[[], None]
    show: Callable[[str], Awaitable[None]]


def connect(launch: Launch, home: Path, asks: Asks) -> McpConnection:
    """Begin to connect; `McpConnection.wait_opened` waits for it."""
    named = {name.lower() for name in launch.settings.headers}
    auth = None
    if launch.settings.url and "authorization" not in named:
        auth = sign_in(launch, home, asks.show)
    opened = ServerTransport(launch, auth)
    hooks = Hooks(opened.transport, asks.asker, asks.changed, launch.roots, opened.why)
    return McpConnection(launch.name, hooks)
