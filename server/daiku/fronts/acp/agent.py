"""The agent that a client of ACP talks to: its requests, and the sessions that it has open."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, Agent, Client, RequestError
from acp.core import AgentSideConnection
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    CurrentModeUpdate,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionModeResponse,
    Usage,
)

from daiku.domain.errors import Failure
from daiku.domain.messages import Usage as Used
from daiku.domain.runs import Mode
from daiku.fronts.acp.conversation import Conversation
from daiku.fronts.acp.lines import Lines
from daiku.fronts.acp.opening import McpServer, open_folder, roots_of, server_settings
from daiku.fronts.acp.prompt import Block, read_prompt
from daiku.fronts.acp.refusals import answered, refusal
from daiku.fronts.acp.workspace import ClientFiles, ClientTerminals
from daiku.texts.terminal import locale_of, localize
from daiku.texts.text import text
from daiku.version import __version__
from daiku.workspace.disk import DiskWorkspace

log = logging.getLogger(__name__)

MODES: dict[Mode, tuple[str, str]] = {
    "ask": ("acp.mode_ask", "acp.does_ask"),
    "plan": ("acp.mode_plan", "acp.does_plan"),
    "act": ("acp.mode_act", "acp.does_act"),
}
"""Each with its name and what it does, for people."""
MOST_LISTED = 200
CLOSING_SECONDS = 3.0


async def serve_client(lines: Lines, model: str = "") -> None:
    """Serve one client until it leaves. Runs under way are let go of, and stay resumable. `model` overrides the
    settings' (empty: it does not)."""
    made: list[AcpAgent] = []

    def make(client: Client) -> Agent:
        made.append(AcpAgent(client, model))
        # What it does not implement is left to the library, which answers that there is no such method.
        return cast("Agent", made[0])

    connection = AgentSideConnection(make, lines, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await made[0].aclose()  # before the requests are cancelled: a cancelled run would be over
        await connection.close()


class AcpAgent:
    """Implements the library's `Agent`."""

    def __init__(self, client: Client, model: str) -> None:
        self._client = client
        self._model = model
        self._offer = ClientCapabilities()
        self._language = locale_of(os.environ)
        self._open: dict[str, Conversation] = {}

    @answered
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,  # what else a client of another version sends
    ) -> InitializeResponse:
        self._offer = client_capabilities or ClientCapabilities()
        log.info("client: %s", client_info.name if client_info else "unnamed")
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="daiku", title="Daiku", version=__version__),
            auth_methods=[],
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
        )

    @answered
    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        opened = await self._opened(cwd, additional_directories, mcp_servers)
        opened.made_here = True
        return NewSessionResponse(session_id=opened.session, modes=self._modes(opened.mode))

    @answered
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse:
        opened = await self._opened(cwd, additional_directories, mcp_servers, session_id)
        opened.restore(shown=True)
        opened.offer_commands()
        await opened.outbox.drained()
        return LoadSessionResponse(modes=self._modes(opened.mode))

    @answered
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        opened = await self._opened(cwd, additional_directories, mcp_servers, session_id)
        opened.restore(shown=False)
        return ResumeSessionResponse(modes=self._modes(opened.mode))

    @answered
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        folder = Path(cwd) if cwd else Path.cwd()
        disk = DiskWorkspace(roots_of(str(folder), ()))
        app = open_folder(disk).app
        try:
            key = str(disk.roots[0]) if cwd else None
            found = app.journal.list_sessions(limit=MOST_LISTED, workspace=key)
            shown = [
                SessionInfo(
                    session_id=s.session_id, cwd=place, title=s.title or None, updated_at=s.updated_at
                )
                for s in found
                if s.last_seq and (place := app.journal.folder_of(s.session_id))
            ]
        finally:
            await app.aclose()
        return ListSessionsResponse(sessions=shown)

    @answered
    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
        await self._close(self._find(session_id))
        return CloseSessionResponse()

    @answered
    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse:
        """The mode of the turns that begin from now on."""
        opened = self._find(session_id)
        found: dict[str, Mode] = {mode: mode for mode in MODES}
        mode = found.get(mode_id)
        if mode is None:
            raise RequestError.invalid_params({"modeId": localize(text("acp.no_mode", name=repr(mode_id)))})
        opened.mode = mode
        opened.outbox.put(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode_id))
        return SetSessionModeResponse()

    @answered
    async def prompt(self, session_id: str, prompt: list[Block], **kwargs: Any) -> PromptResponse:
        ended = await self._find(session_id).prompt(read_prompt(prompt))
        return PromptResponse(stop_reason=ended.reason, usage=_usage(ended.result.usage))

    @answered
    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        opened = self._open.get(session_id)
        if opened is not None:
            await opened.cancel()

    async def aclose(self) -> None:
        """Let go of every session: runs under way stay resumable."""
        closing = [asyncio.ensure_future(self._close(each)) for each in tuple(self._open.values())]
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_SECONDS)

    # ---- sessions

    async def _opened(
        self,
        cwd: str,
        more: Sequence[str] | None,
        servers: Sequence[McpServer] | None,
        session: str | None = None,
    ) -> Conversation:
        """A session of the client, new where none is named. Raises UsageError: no such folder or session, or it
        is another folder's."""
        if session is not None and session in self._open:
            self._open[session].refuse_if_busy()
            await self._close(self._open[session])
        named = roots_of(cwd, more or ())
        disk = DiskWorkspace(named)
        files = ClientFiles(disk, self._client, self._offer, named)
        terminals = ClientTerminals(self._client) if self._offer.terminal else None
        given = tuple(map(server_settings, servers or ()))
        opened = open_folder(files, given, terminals=terminals, model=self._model)
        journal, key = opened.app.journal, str(disk.roots[0])
        try:
            if session is None:
                session = journal.add_session(key)
            else:
                _check_folder(session, journal.folder_of(session), key)
        except BaseException:
            await opened.app.aclose()
            raise
        files.session = session
        conversation = Conversation(
            self._client, session, opened, self._language, place=files.place, written=files.written
        )
        if terminals is not None:
            terminals.session, terminals.shown = session, conversation.show_terminal
        self._open[session] = conversation
        return conversation

    def _find(self, session: str) -> Conversation:
        found = self._open.get(session)
        if found is None:
            raise refusal(Failure(kind="not_found", message=text("acp.not_open", session=repr(session))))
        return found

    async def _close(self, conversation: Conversation) -> None:
        self._open.pop(conversation.session, None)
        await conversation.close()

    def _modes(self, current: Mode) -> SessionModeState:
        return SessionModeState(
            current_mode_id=current,
            available_modes=[
                SessionMode(id=mode, name=localize(text(name)), description=localize(text(does)))
                for mode, (name, does) in MODES.items()
            ],
        )


def _check_folder(session: str, folder: str, wanted: str) -> None:
    if folder != wanted:
        message = text("acp.other_folder", session=session, folder=repr(folder))
        raise refusal(Failure(kind="not_found", message=message))


def _usage(used: Used) -> Usage:
    return Usage(
        total_tokens=used.prompt_tokens + used.completion_tokens,
        input_tokens=used.prompt_tokens,
        output_tokens=used.completion_tokens,
        cached_read_tokens=used.cached_tokens or None,
    )
