"""The way to `emulate`: who asks, faults on the way, what is sent held against GitHub's description, answers by ETag."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.services.github.described import problems, problems_of_graphql

Fault = Literal["500", "502", "429", "secondary", "reset", "lost"]
"""`secondary`: too much at a time, as GitHub says it; `reset`: the connection ends before anything is done; `lost`: it is
done, and the answer never comes."""
FAULTS: tuple[Fault, ...] = ("500", "502", "429", "secondary", "reset", "lost")
CHANGES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: `login` is whose token it carries (empty: nobody's), `data` its body read."""

    method: str
    path: str
    query: str
    token: str
    login: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def data(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def parts(self) -> list[str]:
        return self.path.strip("/").split("/")

    @property
    def changes(self) -> bool:
        """Whether it is to change something; a question in GraphQL is none."""
        return self.method in CHANGES and not (self.path == "/graphql" and b"mutation" not in self.body)

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    data: Any = None
    headers: tuple[tuple[str, str], ...] = ()


Upstream = Callable[..., Reply]
"""Asks `emulate`: method, path, query, login, data."""
Answer = Callable[[Asked, Upstream], Reply]


@dataclass
class Proxy:
    """`tokens` says whose each token is. `fault`: what befalls a request, None where nothing does. `wrong` is what GitHub
    would not have understood of the requests."""

    port: int
    named: str
    """How `emulate` names itself in its answers."""
    tokens: dict[str, str]
    answer: Answer
    fault: Callable[[Asked], Fault | None] = lambda _: None
    received: list[Asked] = field(default_factory=list[Asked])
    answered: list[int] = field(default_factory=list[int])
    """The status of each answer."""
    wrong: list[str] = field(default_factory=list[str])
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def taken(self, asked: Asked) -> Fault | None:
        with self.lock:
            self.received.append(asked)
            if asked.header("user-agent") == "daiku":
                self.wrong += (
                    problems_of_graphql(asked.body)
                    if asked.path == "/graphql"
                    else problems(asked.method, asked.path, asked.query, asked.body)
                )
        return self.fault(asked)  # not under the lock: it may ask this proxy for something itself

    def upstream(
        self, method: str, path: str, query: str, login: str, data: Any = None, jwt: str = ""
    ) -> Reply:
        """What `emulate` answers to `login`, who has a token of that name there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Accept": "application/json", "Host": urlsplit(self.named).netloc}
        if jwt or login:
            headers["Authorization"] = f"Bearer {jwt or login}"
        body = None if data is None else json.dumps(data)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, f"{path}?{query}" if query else path, body, headers)
            response = connection.getresponse()
            text = response.read().decode().replace(self.named, self.url)
            link = response.headers.get("Link", "").replace(self.named, self.url)
        finally:
            connection.close()
        return Reply(response.status, json.loads(text) if text else None, (("Link", link),) if link else ())


@contextmanager
def running(proxy: Proxy) -> Generator[Proxy]:
    """The proxy, for as long as the block runs."""

    class Handler(_Handler):
        to = proxy

    http_server = _Http(("127.0.0.1", 0), Handler)
    proxy.url = f"http://127.0.0.1:{http_server.server_address[1]}"
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        http_server.shutdown()
        http_server.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    to: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits until its head is acknowledged

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # so the library calls it
        """The tests look at `received`."""

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        token = re.sub(r"(?i)^(bearer|token) ", "", self.headers.get("Authorization", ""))
        login = self.to.tokens.get(token, "")
        asked = Asked(self.command, parts.path, parts.query, token, login, body, tuple(self.headers.items()))
        fault = self.to.taken(asked)
        if fault in (None, "lost"):
            try:
                reply = self.to.answer(asked, self.to.upstream)
            except Exception:
                self.to.wrong.append(traceback.format_exc())
                raise
            if fault is None:
                self._say(reply)
                return
        if fault in ("reset", "lost"):
            self.close_connection = True
            self.connection.close()
            return
        assert fault is not None
        self._say(_refused(fault))

    def _say(self, reply: Reply) -> None:
        content = b"" if reply.data is None else json.dumps(reply.data).encode()
        etag = f'W/"{hashlib.sha256(content).hexdigest()}"'
        status = reply.status
        if self.command == "GET" and status == 200 and self.headers.get("If-None-Match") == etag:
            status, content = 304, b""
        self.to.answered.append(status)
        self.send_response(status)
        for name, value in reply.headers:
            self.send_header(name, value)
        if self.command == "GET":
            self.send_header("ETag", etag)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _refused(fault: Fault) -> Reply:
    match fault:
        case "429":
            return Reply(429, {"message": "API rate limit exceeded"}, (("Retry-After", "1"),))
        case "secondary":
            told = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            return Reply(403, {"message": told}, (("Retry-After", "1"),))
        case _:
            return Reply(int(fault), {"message": "Server Error"})
