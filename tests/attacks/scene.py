"""A scene of an attack: a project and a home, a listener that nobody may reach, and real runs that a script plays."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, AppParts, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings
from daiku.domain.errors import UsageError
from daiku.domain.events import ApprovalAsked, Delta, ToolOutput, ToolResponse
from daiku.domain.runs import RunLimits
from daiku.guard.sandbox import bubblewrap
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.testing import FakeLLM
from daiku.trace.telemetry.logger import TraceLogger
from daiku.workspace.disk import DiskWorkspace
from tests.attacks.places import Ground, ground

needs_bubblewrap = [
    pytest.mark.slow,  # real sandboxes
    # The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
    pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here"),
]
Call = dict[str, Any]
LEVELS = ("ask", "edits", "sandbox", "all", "work")
"""Default with a person who rejects everything, the other levels with nobody there, and a run on a work item."""


def call(tool: str, **args: object) -> Call:
    return {"tool": tool, "args": args}


def shell(*commands: str, **more: object) -> list[Call]:
    return [call("shell/run", command=command, timeout=10, **more) for command in commands]


@dataclass(frozen=True)
class Played:
    """What a run left: the outcome of each call, and every sink as text."""

    outcomes: list[str]
    told: list[str]
    asked: list[str]
    sinks: dict[str, str]

    def leaks(self, *secrets: str) -> list[str]:
        """Return the sinks and calls in which one of `secrets` stands."""
        sinks = [name for name, text in self.sinks.items() if any(s in text for s in secrets)]
        return [
            *sinks,
            *(f"call {at}" for at, text in enumerate(self.told) if any(s in text for s in secrets)),
        ]


@dataclass(frozen=True)
class Scene(Ground):
    """A ground with a listener at `url`; `heard` are the paths that it was asked for. The address is one of this machine,
    but nothing takes it for one: a command that names it wants the network."""

    url: str = ""
    heard: list[str] = field(default_factory=list[str])

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the project."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(text, encoding="utf-8", newline="")
        return file

    async def play(
        self,
        level: str,
        calls: Sequence[Call],
        *,
        prompt: str = "Go",
        answer: Sequence[object] = ("Done.",),
        environ: dict[str, str] | None = None,
        rules: Iterable[str] = (),
        deny: Iterable[str] = (),
        tainted: bool = False,
        **config: Any,
    ) -> Played:
        """Play `calls` in one run at `level`, one call a request."""
        llm = FakeLLM(*calls, *answer)  # pyright: ignore[reportArgumentType]  # replies of any form
        home = self.base / f"daiku-{level}"
        home.mkdir(exist_ok=True)
        approvals = ApprovalSettings(commands_allow=tuple(rules), commands_deny=tuple(deny))
        shown: list[Chunk] = []
        with TraceLogger(home / "trace.jsonl") as trace:
            given = AppParts(model=llm, plugins=False, environ=environ or {}, trace=trace)
            app = build(
                Config(approvals=approvals, **config),
                workspace=DiskWorkspace((self.root,)),
                home=home,
                parts=given,
            )
            request = RunRequest(
                prompt,
                approvals=level,  # pyright: ignore[reportArgumentType]  # one of LEVELS
                attended=level in ("ask", "work"),
                tainted=tainted or level == "work",
                limits=RunLimits(max_tool_errors=0, max_repeats=0, max_actions=0),
            )
            answers: set[asyncio.Task[None]] = set()

            def watch(chunk: Chunk) -> None:
                shown.append(chunk)
                if isinstance(chunk.event, ApprovalAsked):
                    answers.add(asyncio.create_task(_reject(app, chunk.run, chunk.event)))

            result = await app.runs.run(request, watch)
            stored = [chunk.json() for chunk in app.journal.chunks(result.session_id)]
            await app.aclose()
        events = [chunk.event for chunk in shown]
        responses = [e for e in events if isinstance(e, ToolResponse)]
        return Played(
            [str(e.outcome) for e in responses],
            [str(e.result) for e in responses],
            [str(e) for e in events if isinstance(e, ApprovalAsked)],
            {
                "requests": "\n".join(repr((r.system, r.messages)) for r in llm.requests),
                "journal": "\n".join(stored),
                "screen": "\n".join(chunk.json() for chunk in shown),
                "stream": "".join(e.text for e in events if isinstance(e, Delta)),
                "output": "".join(e.text for e in events if isinstance(e, ToolOutput)),
                "answer": str(result.text),
                "trace": (home / "trace.jsonl").read_text("utf-8"),
                "files": "".join(p.read_bytes().decode("latin-1") for p in _records(home)),
            },
        )


def _records(home: Path) -> list[Path]:
    return [
        p for p in sorted(home.rglob("*")) if p.is_file() and not p.is_symlink() and "sandbox" not in p.parts
    ]


async def _reject(app: App, run: str, asked: ApprovalAsked) -> None:
    with suppress(UsageError):  # the run may have ended, or answered it
        await app.runs.approve(run, asked.approval_id, "reject_once")


@contextmanager
def scene() -> Generator[Scene]:
    """A ground with a listener, a repository, and one commit."""
    heard: list[str] = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815  # the names that http.server looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        with ground() as g:
            made = Scene(g.base, g.root, g.home, g.other, f"http://0x7f000001:{server.server_port}", heard)
            made.git("init", "-q", "-b", "main")
            made.git("add", ".")
            made.git("commit", "-qm", "first")
            yield made
    finally:
        server.shutdown()
        server.server_close()
