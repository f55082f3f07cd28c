"""Bare repositories over HTTP by `git http-backend`: people with tokens, and every way in which a server fails."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

Fault = Literal["401", "403", "404", "429", "500", "hang", "reset", "cut", "applied-then-timeout", "redirect"]
"""`reset`: the connection ends without a word; `cut`: in the middle of an answer; `applied-then-timeout`: a push
happens, and its answer never comes."""


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    query: str
    authorization: str


@dataclass
class GitServer:
    """Repositories below `folder` at `url`/NAME.git. `tokens`: who may read and write, by password; without any,
    everybody may. `readers` may only read. `faults` are taken one after the other, each by one request whose path or
    query holds its key; what is "" is taken by any. `elsewhere` is where redirects lead."""

    folder: Path
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    readers: dict[str, str] = field(default_factory=dict[str, str])
    public: bool = False
    faults: list[tuple[str, Fault]] = field(default_factory=list[tuple[str, Fault]])
    elsewhere: str = ""
    received: list[Received] = field(default_factory=list[Received])
    url: str = ""
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set when a request has been left to hang."""
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def address(self, name: str) -> str:
        return f"{self.url}/{name}.git"

    def place(self, name: str) -> Path:
        return self.folder / f"{name}.git"

    def create(self, name: str, default: str = "main") -> Path:
        """A new bare repository without a commit."""
        place = self.place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        run_git(self.folder, "init", "--quiet", "--bare", f"--initial-branch={default}", str(place))
        run_git(place, "config", "http.receivepack", "true")
        run_git(place, "config", "uploadpack.allowAnySHA1InWant", "false")
        return place

    def commit(self, name: str, files: dict[str, str], branch: str = "main", message: str = "change") -> str:
        """A new commit on `branch`, made beside the server, with these files and those that were there."""
        work = Path(tempfile.mkdtemp(prefix="work-", dir=self.folder))
        run_git(self.folder, "clone", "--quiet", "--no-local", str(self.place(name)), str(work))
        try:
            if run_git(work, "ls-remote", "--heads", "origin", branch):
                run_git(work, "checkout", "--quiet", "-B", branch, f"origin/{branch}")
            else:
                run_git(work, "checkout", "--quiet", "-B", branch)
            for path, content in files.items():
                (work / path).parent.mkdir(parents=True, exist_ok=True)
                (work / path).write_text(content, "utf-8")
            run_git(work, "add", "--all")
            run_git(work, "commit", "--quiet", "--allow-empty", "-m", message)
            run_git(work, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
            return run_git(work, "rev-parse", "HEAD")
        finally:
            shutil.rmtree(work)

    def head(self, name: str, branch: str) -> str:
        """The commit of a branch; empty where there is none."""
        listed = run_git(self.place(name), "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        return listed.strip()

    def fault(self, path: str, query: str) -> Fault | None:
        with self.lock:
            for at, (key, fault) in enumerate(self.faults):
                if key in f"{path}?{query}":
                    del self.faults[at]
                    return fault
        return None


@contextmanager
def git_server(folder: Path) -> Generator[GitServer]:
    """The server, for as long as the block runs."""
    server = GitServer(folder)

    class Handler(_Handler):
        git = server

    http = _Http(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()


def run_git(cwd: Path, *argv: str) -> str:
    """What git prints, with nobody's settings."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "Person",
        "GIT_AUTHOR_EMAIL": "person@example.org",
        "GIT_COMMITTER_NAME": "Person",
        "GIT_COMMITTER_EMAIL": "person@example.org",
    }
    done = subprocess.run(["git", *argv], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {argv}: {done.stderr}"
    return done.stdout.strip()


def raw_object(place: Path, kind: Literal["blob", "tree"], content: bytes) -> str:
    """The id of an object with these bytes, right or wrong."""
    argv = ["git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return (
        subprocess.run(argv, cwd=place, input=content, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of the server's."""


class _Handler(BaseHTTPRequestHandler):
    git: GitServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits until its head is acknowledged

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # so the library calls it
        """The tests look at `received`."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _answer(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        given = self.headers.get("Authorization", "")
        self.git.received.append(Received(self.command, parts.path, parts.query, given))
        fault = self.git.fault(parts.path, parts.query)
        if fault in ("hang", "reset"):
            self._leave(hang=fault == "hang")
        elif fault == "redirect":
            self._say(302, location=f"{self.git.elsewhere}{self.path}")
        elif fault is not None and fault.isdigit():
            self._say(int(fault))
        elif status := self._refusal(parts.path, parts.query, given):
            self._say(status)
        else:
            self._backend(parts.path, parts.query, body, fault)

    def _refusal(self, path: str, query: str, given: str) -> int:
        writes = "git-receive-pack" in f"{path}?{query}"
        if not self.git.tokens or (self.git.public and not writes):
            return 0
        kind, _, encoded = given.partition(" ")
        if kind.lower() != "basic":
            return 401
        user, _, token = base64.b64decode(encoded).decode().partition(":")
        if self.git.tokens.get(user) == token:
            return 0
        if self.git.readers.get(user) == token:
            return 403 if writes else 0
        return 401

    def _backend(self, path: str, query: str, body: bytes, fault: Fault | None) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.git.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "HOME": "/dev/null",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "somebody",
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        if fault == "applied-then-timeout":
            self._leave(hang=True)
            return
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.partition(": ") for line in head.decode("latin-1").split("\r\n") if line]
        status = next((value for name, _, value in headers if name == "Status"), "200 OK")
        self.send_response(int(status.split(" ")[0]))
        for name, _, value in headers:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "cut" else content)
        if fault == "cut":
            self._leave(hang=False)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return zlib.decompress(body, 31) if self.headers.get("Content-Encoding") == "gzip" else body

    def _leave(self, *, hang: bool) -> None:
        if hang:
            self.git.waiting.set()
            self.git.closing.wait(60)
        self.close_connection = True
        cast("object", self.connection.close())

    def _say(self, status: int, *, location: str = "") -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()
