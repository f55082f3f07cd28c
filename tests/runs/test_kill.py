"""`kill -9` at every durable event of a ten-tool run, then resume: the same end, no effect twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import pytest

from daiku.app import build
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import EPHEMERAL
from daiku.domain.runs import RunResult
from daiku.models.table import LLMSettings
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace

# The tests fork processes and kill them, which Windows cannot do.
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")

Json = dict[str, Any]
END = "All ten are done."
PIPE = 60_000
"""Bytes that a pipe takes while nobody reads it."""


def script(folder: Path) -> Path:
    """Ten effects: eight lines appended by commands, two files written; reads in between."""
    lines: list[Json] = []
    for i in range(8):
        calls: list[Json] = [{"tool": "shell/run", "args": {"command": f"echo {i} >> effects.txt"}}]
        if i % 3 == 0:
            calls.append({"tool": "files/read", "args": {"path": "start.txt"}})
        lines.append({"text": f"step {i}", "calls": calls})
    written = [
        {"tool": "files/write", "args": {"path": f"made{i}.txt", "content": f"made {i}\n"}} for i in range(2)
    ]
    lines += [{"text": "files", "calls": written}, {"text": END}]
    path = folder / "script.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def config(path: Path) -> Config:
    return Config(
        llm=LLMSettings(provider="scripted", model=f"scripted/{path}"),
        approvals=ApprovalSettings(edit="allow", command="allow"),
        sandbox=SandboxSettings(mode="off"),
    )


class World:
    """A workspace and a home that outlive the processes that work in them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "project"
        self.root.mkdir(parents=True)
        (self.root / "start.txt").write_text("start\n")
        self.config = config(script(folder))
        self.request = RunRequest("go", approvals="all")

    async def run(self, *, die_at: int = 0) -> RunResult:
        """The whole run; with `die_at` the process kills itself at that durable event."""
        app = build(self.config, workspace=DiskWorkspace((self.root,)), home=self.home)
        count = 0

        def listen(chunk: Chunk) -> None:
            nonlocal count
            count += chunk.type not in EPHEMERAL
            if count == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        result = await app.runs.run(self.request, listen)
        await app.aclose()
        return result

    async def resume(self) -> RunResult:
        app = build(self.config, workspace=DiskWorkspace((self.root,)), home=self.home)
        session = app.journal.list_sessions()[0]
        assert session.status == "interrupted"
        run = app.journal.chunks(session.session_id)[0].run
        shown: list[Chunk] = []
        result = await app.runs.resume(run, shown.append, approvals="all")
        again = await app.runs.resume(run, shown.append, approvals="all")
        assert again.status == result.status
        assert (await replay(app.journal.chunks(session.session_id))).difference is None
        await app.aclose()
        return result

    def effects(self) -> Counter[str]:
        path = self.root / "effects.txt"
        lines = path.read_text().split() if path.exists() else []
        return Counter(lines)

    def has_all_files(self) -> bool:
        return all((self.root / f"made{i}.txt").exists() for i in range(2))

    def chunks(self) -> list[Chunk]:
        app = build(self.config, workspace=DiskWorkspace((self.root,)), home=self.home)
        try:
            return app.journal.chunks(app.journal.list_sessions()[0].session_id)
        finally:
            app.journal.close()


class Dies(Protocol):
    """A world in which a run can be killed."""

    async def run(self, *, die_at: int = 0) -> RunResult: ...


def killed_in_child(world: Dies, die_at: int) -> bool:
    """Run in a forked process that is killed at that durable event: only its files are left. False where the run
    came to its end before, completed. What the run raises fails the test, with its traceback."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert asyncio.run(world.run(die_at=die_at)).status == "completed"
            code = 0
        except BaseException:  # noqa: BLE001  # the test process says what it was
            os.write(write, traceback.format_exc()[-PIPE:].encode("ascii", "backslashreplace")[-PIPE:])
        finally:
            os._exit(code)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as told:
        said = told.read()
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, -signal.SIGKILL), f"at event {die_at} the run raised:\n{said}"
    return ended != 0


def durable_events(tmp_path: Path) -> int:
    world = World(tmp_path / "whole")
    result = asyncio.run(world.run())
    assert (result.status, result.text) == ("completed", END)
    assert world.effects() == Counter(str(i) for i in range(8))
    return len(world.chunks())


@pytest.mark.slow(seconds=40)
def test_killed_anywhere_the_run_resumes_to_the_same_end_and_nothing_happens_twice(tmp_path: Path) -> None:
    total = durable_events(tmp_path)
    assert total > 40
    for die_at in range(1, total):
        world = World(tmp_path / str(die_at))
        assert killed_in_child(world, die_at), die_at
        result = asyncio.run(world.resume())
        # The scripted model does not repeat an edit that the kill prevented, so its claim is not verified.
        status = "completed" if world.has_all_files() else "completed_unverified"
        assert (result.status, result.text) == (status, END), die_at
        effects = world.effects()
        assert max(effects.values()) == 1, (die_at, effects)
        chunks = world.chunks()
        interrupted = [c for c in chunks if c.type == "tool_response" and "interrupted" in c.data]
        assert len(interrupted) <= 1, die_at
        assert len(effects) >= 8 - len(interrupted), die_at
        assert sum(c.type == "run_finished" for c in chunks) == 1
        seqs = [c.seq for c in chunks]
        assert seqs == sorted(set(seqs)), die_at
        called = Counter(json.loads(c.data)["id"] for c in chunks if c.type == "tool_call")
        answered = Counter(json.loads(c.data)["id"] for c in chunks if c.type == "tool_response")
        assert called == answered, die_at
        assert max(called.values()) == 1, die_at
