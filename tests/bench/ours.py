"""What is measured: Daiku itself, from the socket to the bytes that an editor reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import ProviderSettings, SandboxSettings
from daiku.domain.runs import RunLimits, RunResult
from daiku.domain.tools import ToolResult
from daiku.fronts.lsp.requests.stream import ChunkStream
from daiku.fronts.lsp.wire.pipes import OutputQueue
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.tools.tool import Args, Tool, ToolContext
from daiku.workspace.disk import DiskWorkspace


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
    (folder / "project").mkdir(parents=True, exist_ok=True)
    (folder / "home" / "traces").mkdir(parents=True, exist_ok=True)  # as daiku.settings.home does
    app = build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")
    app.registry.remove(app.registry.names)
    app.registry.add([Tool("bench/echo", "read", EchoArgs, echo)])
    return app


async def turns(app: App) -> int:
    """Turns with a streamed tool call until the model has had enough; the number of calls."""
    calls = 0

    def listen(chunk: Chunk) -> None:
        nonlocal calls
        calls += chunk.type == "tool_response"

    limits = RunLimits(max_rounds=1000, max_repeats=0)
    result = await app.runs.run(RunRequest("go", limits=limits, approvals="all"), listen)
    assert result.status == "completed", result
    return calls


class Counter:
    """A pipe whose reader is always quick enough: counts what an editor would read."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: memoryview) -> int:
        self.bytes += len(data)
        return len(data)

    def when_ready(self, call: Callable[[], None]) -> None:
        call()

    def close(self) -> None:
        """There is nothing to close."""


async def deltas(app: App) -> tuple[RunResult, int]:
    """One reply, journaled; every chunk becomes the bytes of its `$/progress` message. The bytes in all."""
    counter = Counter()
    outlet = OutputQueue(counter)
    stream = ChunkStream(outlet, "token")
    result = await app.runs.run(RunRequest("go", approvals="all"), stream.send)
    stream.flush()
    outlet.flush()
    assert result.status == "completed", result
    return result, counter.bytes
