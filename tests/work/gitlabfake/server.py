"""A GitLab for tests, over HTTP: its API and git, with faults where a test wants them."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.work.gitlabfake.routes import Refused, answer
from tests.work.gitlabfake.state import DEVELOPER, State


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a request. `applied`: only after it was carried out. `status` 0: the connection is cut."""

    status: int = 0
    applied: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    says: str = "a fault"


@dataclass
class Heard:
    method: str
    path: str
    query: str
    status: int
    headers: dict[str, str]

    @property
    def changes(self) -> bool:
        return self.method != "GET" and self.path.startswith("/api/")


class GitLabForge:
    """The server with its state; `fault` is asked before each request of the API, `fault_of_change` before each that
    changes something and before each push, with what it is to change."""

    def __init__(self) -> None:
        self.state = State()
        self.heard: list[Heard] = []
        self.fault: Callable[[str, str], Fault | None] = lambda _method, _path: None
        self.fault_of_change: Callable[[str, str, bytes], Fault | None] = lambda _method, _path, _body: None
        self.dropped_headers: tuple[str, ...] = ()
        """Response headers of lists that a proxy drops."""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.state.url

    @property
    def api_url(self) -> str:
        return f"{self.state.url}/api/v4"

    def calls(self, kind: Literal["all", "changes"] = "all") -> list[Heard]:
        return [each for each in self.heard if kind == "all" or each.changes]


class _Handler(BaseHTTPRequestHandler):
    forge: GitLabForge
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body in one packet: else each answer waits for an acknowledgement
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as the base has it
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the names that the base calls

    def _serve(self) -> None:
        at = urlsplit(self.path)
        body = self._body()
        if not at.path.startswith("/api/"):
            self._git(at.path, at.query, body)
            return
        fault = self.forge.fault(self.command, at.path)
        if fault is None and self.command != "GET":
            fault = self.forge.fault_of_change(self.command, at.path, body)
        heard = Heard(self.command, at.path, at.query, 0, dict(self.headers.items()))
        self.forge.heard.append(heard)
        if fault is not None and not fault.applied:
            heard.status = fault.status
            self._fail(fault)
            return
        status, found = self._answered(at.path, {k: v[-1] for k, v in parse_qs(at.query).items()}, body)
        heard.status = status
        if fault is not None:
            self._fail(fault)
        else:
            self._reply(status, found, parse_qs(at.query))

    def _answered(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        user = self.forge.state.tokens.get(self.headers.get("PRIVATE-TOKEN", ""))
        if user is None:
            return 401, {"message": "401 Unauthorized"}
        with self.forge.lock:
            try:
                found = answer(self.forge.state, user, self.command, path, query, json.loads(body or b"{}"))
            except Refused as refused:
                return refused.status, {"message": refused.message}
        return (201 if self.command == "POST" else 200), found

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts: list[bytes] = []
            while size := int(self.rfile.readline().strip() or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _reply(self, status: int, found: Any, query: dict[str, list[str]]) -> None:
        headers: dict[str, str] = {}
        if isinstance(found, list):
            size, page = int(query.get("per_page", ["20"])[-1]), int(query.get("page", ["1"])[-1])
            more = len(found) > page * size
            headers = {
                "X-Per-Page": str(size),
                "X-Page": str(page),
                "X-Next-Page": str(page + 1) if more else "",
            }
            headers["X-Total"] = str(len(found))
            at = urlsplit(self.path)._replace(query=urlencode(query | {"page": [str(page + 1)]}, doseq=True))
            if more:
                headers["Link"] = f'<{self.forge.url}{at.geturl()}>; rel="next"'
            headers = {
                name: value for name, value in headers.items() if name not in self.forge.dropped_headers
            }
            found = found[(page - 1) * size : page * size]
        plain = isinstance(found, str)
        data = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        headers["Content-Type"] = "text/plain" if plain else "application/json"
        self._send(status, headers, data)

    def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, fault: Fault) -> None:
        if fault.status:
            self._send(fault.status, fault.headers, json.dumps({"message": fault.says}).encode())
            return
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)  # closing resets the connection
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def _git(self, path: str, query: str, body: bytes) -> None:
        """git over HTTP: reading for everybody who is known, pushing for developers."""
        name, _, rest = path.strip("/").partition(".git")
        project = self.forge.state.projects.get(name)
        scheme, _, code = self.headers.get("Authorization", "").partition(" ")
        login = base64.b64decode(code).decode() if scheme == "Basic" else ""
        user = self.forge.state.tokens.get(login.partition(":")[2])
        if user is None:
            self._send(401, {"WWW-Authenticate": 'Basic realm="GitLab"'}, b"")
            return
        if project is None or project.repository is None:
            self._send(404, {}, b"")
            return
        pushing = "git-receive-pack" in path + query
        if pushing and (project.members.get(user, 0) < DEVELOPER or project.archived):
            self._send(403, {}, b"You are not allowed to push code to this project.")
            return
        fault = None
        if path.endswith("/git-receive-pack"):
            fault = self.forge.fault_of_change(self.command, path, body.partition(b"\0")[0])
        if fault is not None and not fault.applied:
            self._fail(fault)
            return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(project.repository),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": rest,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": self.forge.state.users[user]["username"],
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True
        )
        if fault is not None:
            self._fail(fault)
            return
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        headers["Connection"] = "close"  # on one that was used before, git repeats by itself what was reset
        self._send(int(headers.pop("Status", "200").split()[0]), headers, data)


@contextmanager
def running() -> Generator[GitLabForge]:
    """A GitLab that listens on this machine."""
    forge = GitLabForge()
    handler = type("Handler", (_Handler,), {"forge": forge})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    forge.state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
