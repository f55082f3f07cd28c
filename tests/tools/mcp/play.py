"""Servers of tests over real processes: what the tests of MCP share."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from daiku.domain.config import MCPServerSettings
from daiku.domain.events import ApprovalDecision, Event
from daiku.domain.tools import ToolCall, ToolResult
from daiku.settings.config import Config
from daiku.tools.mcp import McpContext, McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Answer, Ask, ToolContext
from daiku.trace.grants import ConsentStore

SERVICES = Path(__file__).resolve().parents[2] / "services"


def demo(name: str = "demo", **more: Any) -> MCPServerSettings:
    """The well-behaved server."""
    command = (sys.executable, str(SERVICES / "mcp_demo.py"))
    return MCPServerSettings(mcp_server_name=name, command=command, **more)


def wild(behaviour: str, file: Path | None = None, name: str = "wild") -> MCPServerSettings:
    """The hostile server."""
    command = (sys.executable, str(SERVICES / "mcp_wild.py"), behaviour, *([str(file)] if file else []))
    return MCPServerSettings(mcp_server_name=name, command=command)


class Played:
    """Servers with a registry; keeps what was told and emitted."""

    def __init__(self, folder: Path, settings: tuple[MCPServerSettings, ...], **more: Any) -> None:
        self.told: list[str] = []
        self.events: list[Event] = []
        self.hear: Callable[[Event], object] = lambda _: None
        self.registry = ToolRegistry(more.pop("tools", ()))
        project = folder / "project"
        project.mkdir(exist_ok=True)
        store = ConsentStore(folder / "home" / "daiku.db")
        place = McpContext((project,), folder / "home", store)
        self.servers = McpServers(settings, self.registry, place, **more)
        self.project = project

    async def allow(self, decision: ApprovalDecision = "allow_once", seconds: float = 20) -> None:
        """Answer everything that is asked, and wait for the servers."""
        for question in self.servers.list_questions():
            self.servers.record_answer(question, decision)
        await self.ready(seconds)

    async def ready(self, seconds: float = 20) -> None:
        await self.servers.start_allowed(self.told.append, person=True, seconds=seconds)

    async def call(self, tool: str, ask: Ask | None = None, /, **args: Any) -> ToolResult:
        context = ToolContext(
            session="s",
            run="r",
            call_id="c",
            workspace=cast(Any, None),
            checkpoints=cast(Any, None),
            config=Config(),
            emit=self._emitted,
            ask=ask,
        )
        return await self.registry.call(ToolCall(tool=tool, args=args), context)

    def _emitted(self, event: Event) -> None:
        self.events.append(event)
        self.hear(event)

    @property
    def tools(self) -> tuple[str, ...]:
        return self.registry.names


@asynccontextmanager
async def playing(folder: Path, *settings: MCPServerSettings, **more: Any) -> AsyncGenerator[Played]:
    """Servers of `settings`, ended afterwards."""
    played = Played(folder, settings, **more)
    try:
        yield played
    finally:
        await played.servers.aclose()


def answers(*texts: str) -> tuple[Ask, list[tuple[str, tuple[str, ...]]]]:
    """A person who gives these answers one after the other; and what they were asked."""
    asked: list[tuple[str, tuple[str, ...]]] = []
    left = list(texts)

    async def ask(question: str, choices: tuple[str, ...]) -> Answer:
        asked.append((question, choices))
        text = left.pop(0)
        return Answer(text, choices.index(text) if text in choices else None)

    return ask, asked


async def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)


def lives(pid: int) -> bool:
    """Whether the process is there (a zombie is not)."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
