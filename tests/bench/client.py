"""A language client as bare as can be: a process, frames written and read with blocking calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.measure import ROOT

Json = dict[str, Any]
EMPTY = ("tests/bench/empty.py",)
OURS = ("-m", "daiku", "lsp")


class Client:
    """Speaks with a server over its stdin and stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._number = 0

    def ask(self, method: str, params: object) -> Json:
        """The answer to one request, which must be no error."""
        message = self.answer(method, params)
        assert "error" not in message, message
        return message

    def answer(self, method: str, params: object) -> Json:
        """Any answer to one request; notifications and requests of the server are passed over."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self._number and "method" not in message:
                return message

    def tell(self, method: str, params: object) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, folder: Path) -> None:
        """Ask for `initialize`, as an editor with a folder does."""
        self.ask(
            "initialize",
            {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": {"window": {}}},
        )

    def _send(self, message: Json) -> None:
        body = json.dumps(message).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._in.flush()

    def _read(self) -> Json:
        length = 0
        while line := self._out.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self._out.read(length))


@contextmanager
def started(arguments: Sequence[str], home: Path) -> Generator[Client]:
    """A server as a process of its own with compiled bytecode, as installed; ended afterwards."""
    environ = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT}",
        "PYTHONPYCACHEPREFIX": str(home / "bytecode"),  # compiled by the round that does not count
        "DAIKU_HOME": str(home),
    }
    pipe = subprocess.PIPE
    command = [sys.executable, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield Client(process)
        finally:
            process.kill()
