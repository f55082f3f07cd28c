"""A client made with the library's own connection, and the agent in the same process: two pipes between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import RequestError, connect_to_agent, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    FileSystemCapabilities,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

from daiku.fronts.acp.agent import serve_client
from daiku.fronts.acp.lines import Lines

Pick = Callable[[ToolCallUpdate, list[PermissionOption]], str]


def allow(_call: ToolCallUpdate, options: list[PermissionOption]) -> str:
    """Press the first button."""
    return options[0].option_id


@dataclass
class Editor:
    """What an editor is to the agent. `buffers` are its unsaved texts by path; it writes what it is told to."""

    pick: Pick = allow
    buffers: dict[str, str] = field(default_factory=dict)
    updates: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[tuple[Any, list[PermissionOption]]] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    wrote: list[tuple[str, str]] = field(default_factory=list)
    refuses: frozenset[str] = frozenset()
    terminals: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    outputs: dict[str, bytes] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append((session_id, update))
        self.arrived.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        self._may("request_permission")
        self.asked.append((tool_call, options))
        self.arrived.set()
        picked = self.pick(tool_call, options)
        if picked == "wait":
            await asyncio.Event().wait()
        if picked == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=picked))

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> ReadTextFileResponse:
        self._may("read_text_file")
        self.read.append(path)
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        if not Path(path).is_file():
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=Path(path).read_text(encoding="utf-8"))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse:
        self._may("write_text_file")
        if path in self.refuses:
            raise RequestError.invalid_request({"why": "read only"})
        self.wrote.append((path, content))
        self.buffers.pop(path, None)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, encoding="utf-8")
        return WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        self._may("create_terminal")
        key = f"term-{len(self.terminals)}"
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or ()),
            cwd=cwd,
            env={**os.environ, **{each.name: each.value for each in env or ()}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.terminals[key] = process
        self.outputs[key] = b""
        return CreateTerminalResponse(terminal_id=key)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        process = self.terminals[terminal_id]
        assert process.stdout is not None
        self.outputs[terminal_id] += await process.stdout.read()
        return WaitForTerminalExitResponse(exit_code=await process.wait())

    async def terminal_output(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> TerminalOutputResponse:
        process = self.terminals[terminal_id]
        status = None if process.returncode is None else TerminalExitStatus(exit_code=process.returncode)
        text = self.outputs[terminal_id].decode()
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse:
        self._may("kill_terminal")
        with contextlib.suppress(ProcessLookupError):
            self.terminals[terminal_id].kill()
        return KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse:
        return ReleaseTerminalResponse()

    def on_connect(self, conn: Any) -> None:
        pass

    def _may(self, method: str) -> None:
        if method in self.refuses:
            raise RequestError.method_not_found(method)

    # ---- what it was told

    def of(self, kind: str) -> list[Any]:
        """The updates of one kind, in order."""
        return [update for _, update in self.updates if update.session_update == kind]

    @property
    def said(self) -> str:
        """What the agent said."""
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    async def until(self, true: Callable[[], Any]) -> Any:
        """Wait until `true` is, looking whenever something arrives."""
        async with asyncio.timeout(20):
            while not (found := true()):
                self.arrived.clear()
                await self.arrived.wait()
        return found


FILES = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
TERMINALS = ClientCapabilities(terminal=True)


@dataclass
class Pair:
    """A connected client; `leave` closes its end."""

    agent: Any  # the library's ClientSideConnection: half of its results may be None
    editor: Editor
    ended: asyncio.Task[None]
    leave: Callable[[], None]

    async def prompt(self, session: str, text: str) -> Any:
        async with asyncio.timeout(30):
            return await self.agent.prompt(session_id=session, prompt=[text_block(text)])

    async def new(self, folder: Path, **kwargs: Any) -> str:
        made = await self.agent.new_session(cwd=str(folder), mcp_servers=[], **kwargs)
        return made.session_id


@asynccontextmanager
async def connected(
    editor: Editor | None = None, offer: ClientCapabilities | None = None, *, greet: bool = True
) -> AsyncGenerator[Pair]:
    """An agent and a client that has said `initialize`."""
    editor = editor or Editor()
    to_agent, from_agent = os.pipe(), os.pipe()
    ended = asyncio.ensure_future(serve_client(Lines(to_agent[0], from_agent[1])))
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_agent[0], "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(to_agent[1], "wb", 0)
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    agent = connect_to_agent(cast("Any", editor), writer, reader)
    try:
        if greet:
            await agent.initialize(protocol_version=1, client_capabilities=offer or ClientCapabilities())
        yield Pair(agent, editor, ended, transport.close)
    finally:
        transport.close()
        async with asyncio.timeout(10):
            await ended
        os.close(from_agent[1])
        os.close(to_agent[0])
        with contextlib.suppress(ConnectionResetError):  # it may have had an answer left to write
            await agent.close()
        for process in editor.terminals.values():
            if process.returncode is None:
                process.kill()
                await process.wait()
