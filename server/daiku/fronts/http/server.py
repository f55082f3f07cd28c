"""The HTTP server: socket, startup, and shutdown."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.fronts.http.access import Access
from daiku.fronts.http.channels import Channels
from daiku.fronts.http.routes import make_app
from daiku.fronts.http.work import HttpRuns, SessionTail
from daiku.library.fronts import App
from daiku.texts.text import text

HEAD_SECONDS = 15
"""Timeout in seconds for the head of a request."""
IDLE_SECONDS = 75
"""Keep-alive timeout in seconds."""
END_SECONDS = 3
"""Timeout in seconds for active responses at shutdown."""
SPARE_FILES = 128
"""File descriptors that are reserved for the process itself."""
BACKLOG = 1024
"""Maximum number of pending connections of the socket."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port` (0: any free one).

    Raises UsageError if the address is not local; DaikuError if it is in use or not permitted.
    """
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(Failure(kind="usage", message=text("http.no_host", host=host))) from None
    family, kind, protocol, _, address = addresses[0]
    server_socket = socket.socket(family, kind, protocol)
    try:
        if hasattr(socket, "SO_REUSEPORT"):  # not on Windows, where it would steal the port
            server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            server_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server_socket.bind(address)
        server_socket.listen(BACKLOG)
    except OSError as error:
        server_socket.close()
        if error.errno == errno.EADDRINUSE:
            message, hint = text("http.in_use", where=where), text("http.in_use.hint")
            raise DaikuError(Failure(kind="busy", message=message, hint=hint)) from None
        why = error.strerror or type(error).__name__
        raise DaikuError(
            Failure(kind="usage", message=text("http.no_listen", where=where, why=why))
        ) from None
    return server_socket


def url_of(listening: socket.socket) -> str:
    """Return the URL for clients on this machine."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


class Connection(H11Protocol):
    """A connection with a timeout for the head of each request."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # always a full Transport
        self._start_head_timeout()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if getattr(self.cycle, "response_complete", True):  # there is no cycle before the first request
            self._start_head_timeout()
        else:
            self._cancel_head_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timeout()
        super().connection_lost(exc)

    def _start_head_timeout(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _cancel_head_timeout(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers that calls `on_ready` once it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


async def serve_http(
    app: App,
    listening: socket.socket,
    token: str,
    names: tuple[str, ...],
    on_ready: Callable[[], None],
    stop: asyncio.Event,
) -> None:
    """Serve requests until `stop`; `on_ready` is called once it listens.

    Active runs are paused by `app.aclose`.
    """
    channels = Channels(SessionTail(app))
    asgi_app = Access(make_app(HttpRuns(app, channels)), token, names)
    config = uvicorn.Config(
        asgi_app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        limit_concurrency=connection_limit(),
        backlog=BACKLOG,
    )
    server = _Server(config, on_ready)
    serving = asyncio.create_task(server.serve([listening]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    channels.close()
    server.should_exit = True
    await serving


def connection_limit() -> int:
    """Return the limit of open connections: the limit of open files, minus a reserve."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 8192:
        raised = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    return max(soft - SPARE_FILES, 16) if soft != resource.RLIM_INFINITY else 8192
