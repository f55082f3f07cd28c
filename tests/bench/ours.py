"""What is measured: Daiku itself, from the socket to the bytes that an editor reads."""

from __future__ import annotations

import os
from pathlib import Path

from daiku.app import App, build
from daiku.domain.config import Config, LLMSettings, ProviderSettings, SandboxSettings
from daiku.domain.events import Chunk
from daiku.domain.runs import RunLimits
from daiku.domain.tools import ToolResult
from daiku.lsp.stream import progress_frame
from daiku.runs import RunRequest
from daiku.tools.disk import DiskWorkspace
from daiku.tools.tool import Args, Tool, ToolContext


class EchoArgs(Args):
    text: str


async def echo(args: EchoArgs, _context: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text=args.text)


def make_app(base_url: str, folder: Path) -> App:
    """A real App with a real journal, its model at `base_url`, and one tool that does nothing."""
    compatible = ProviderSettings(base_url=base_url)
    config = Config(
        llm=LLMSettings(provider="compatible", model="bench", compatible=compatible),
        sandbox=SandboxSettings(mode="off"),
    )
    folder.mkdir(parents=True, exist_ok=True)
    app = build(config, workspace=DiskWorkspace((folder,)), home=folder / "home")
    app.registry.remove(app.registry.names)
    app.registry.add([Tool("bench/echo", "read", EchoArgs, echo)])
    return app


async def turns(app: App, count: int) -> None:
    """`count` streaming tool turns through the loop."""
    limits = RunLimits(max_rounds=count)
    result = await app.runs.run(RunRequest("go", limits=limits, approvals="all"), _ignore)
    assert result.status == "limit", result


async def deltas(app: App) -> int:
    """One reply; every chunk becomes the bytes of its `$/progress` message. The bytes in all."""
    total = 0

    def listen(chunk: Chunk) -> None:
        nonlocal total
        total += len(progress_frame("token", chunk))

    await app.runs.run(RunRequest("go", approvals="all"), listen)
    return total


def _ignore(_: Chunk) -> None:
    """The loop's own cost is measured; nobody looks."""


def pin(cpu: int) -> None:
    """Keep this process on one core, so that the service on the other does not disturb it."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {cpu})
