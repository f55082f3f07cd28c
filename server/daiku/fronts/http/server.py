"""The HTTP server itself: its socket, its line on stdout, its end."""

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
from daiku.fronts.http.work import SessionTail, Work
from daiku.library.fronts import App
from daiku.texts.text import text

HEAD_SECONDS = 15
"""A request whose head takes longer to arrive is not waited for."""
IDLE_SECONDS = 75
"""How long a connection without a request is kept."""
END_SECONDS = 3
"""How long answers that are being written may still take at the end."""
SPARE_FILES = 128
"""File descriptors that are kept from connections, for the work itself."""
BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port` (0: any free one). Raises UsageError: no address of this machine;
    DaikuError: in use, or not allowed."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(Failure(kind="usage", message=text("http.no_host", host=host))) from None
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        if hasattr(
            socket, "SO_REUSEPORT"
        ):  # not on Windows, where reusing an address would take it from another
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as wrong:
        made.close()
        if wrong.errno == errno.EADDRINUSE:
            said, hint = text("http.in_use", where=where), text("http.in_use.hint")
            raise DaikuError(Failure(kind="busy", message=said, hint=hint)) from None
        why = wrong.strerror or type(wrong).__name__
        raise DaikuError(
            Failure(kind="usage", message=text("http.no_listen", where=where, why=why))
        ) from None
    return made


def url_of(listening: socket.socket) -> str:
    """The address for clients of this machine."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


class Connection(H11Protocol):
    """A connection on which the head of each request has HEAD_SECONDS to arrive."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # a connection's is always whole
        self._head_begins()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if getattr(self.cycle, "response_complete", True):  # there is no cycle before the first request
            self._head_begins()
        else:
            self._head_ends()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ends()
        super().connection_lost(exc)

    def _head_begins(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_ends(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class _Server(uvicorn.Server):
    """uvicorn, but signals are the command's business, and somebody is told when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def serve_http(
    app: App,
    listening: socket.socket,
    token: str,
    names: tuple[str, ...],
    ready: Callable[[], None],
    stop: asyncio.Event,
) -> None:
    """Answer requests until `stop`; `ready` is called once they are. Runs under way are let go by `app.aclose`."""
    channels = Channels(SessionTail(app))
    checked = Access(make_app(Work(app, channels)), token, names)
    config = uvicorn.Config(
        checked,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        limit_concurrency=most_connections(),
        backlog=BACKLOG,
    )
    server = _Server(config, ready)
    serving = asyncio.create_task(server.serve([listening]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    channels.close()
    server.should_exit = True
    await serving


def most_connections() -> int:
    """How many connections may be open at once: as many as the system lets this process have files, less a few."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 8192:
        more = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        soft = more
    return max(soft - SPARE_FILES, 16) if soft != resource.RLIM_INFINITY else 8192
