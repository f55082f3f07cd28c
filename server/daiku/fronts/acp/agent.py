"""The ACP agent: handlers of a client's requests, and its open sessions."""

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
from daiku.fronts.acp.conversation import ClientConversation
from daiku.fronts.acp.lines import Lines
from daiku.fronts.acp.opening import McpServer, open_folder, roots_of, server_settings
from daiku.fronts.acp.prompt import Block, read_prompt
from daiku.fronts.acp.refusals import convert_errors, refusal
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
"""Text ids of the name and the description of each mode."""
MOST_LISTED = 200
"""Maximum number of sessions in a list."""
CLOSING_SECONDS = 3.0
"""Timeout in seconds for closing all sessions."""


async def serve_client(lines: Lines, model: str = "") -> None:
    """Serve one client until it disconnects; active runs stay resumable.

    `model` overrides the model of the settings unless it is empty.
    """
    agents: list[AcpAgent] = []

    def create_agent(client: Client) -> Agent:
        agents.append(AcpAgent(client, model))
        # For methods that AcpAgent lacks the library answers "method not found".
        return cast("Agent", agents[0])

    connection = AgentSideConnection(create_agent, lines, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await agents[0].aclose()  # before requests are cancelled: cancelling a run would end it
        await connection.close()


class AcpAgent:
    """Implementation of the library's `Agent`."""

    def __init__(self, client: Client, model: str) -> None:
        self._client = client
        self._model = model
        self._offer = ClientCapabilities()
        self._language = locale_of(os.environ)
        self._open: dict[str, ClientConversation] = {}

    @convert_errors
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,  # fields of other protocol versions
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

    @convert_errors
    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        conversation = await self._open_session(cwd, additional_directories, mcp_servers)
        conversation.made_here = True
        return NewSessionResponse(session_id=conversation.session, modes=self._modes(conversation.mode))

    @convert_errors
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse:
        conversation = await self._open_session(cwd, additional_directories, mcp_servers, session_id)
        conversation.restore(send_history=True)
        conversation.offer_commands()
        await conversation.outbox.drained()
        return LoadSessionResponse(modes=self._modes(conversation.mode))

    @convert_errors
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        conversation = await self._open_session(cwd, additional_directories, mcp_servers, session_id)
        conversation.restore(send_history=False)
        return ResumeSessionResponse(modes=self._modes(conversation.mode))

    @convert_errors
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        folder = Path(cwd) if cwd else Path.cwd()
        disk = DiskWorkspace(roots_of(str(folder), ()))
        app = open_folder(disk).app
        try:
            key = str(disk.roots[0]) if cwd else None
            sessions = app.journal.list_sessions(limit=MOST_LISTED, workspace=key)
            infos = [
                SessionInfo(
                    session_id=s.session_id,
                    cwd=session_folder,
                    title=s.title or None,
                    updated_at=s.updated_at,
                )
                for s in sessions
                if s.last_seq and (session_folder := app.journal.folder_of(s.session_id))
            ]
        finally:
            await app.aclose()
        return ListSessionsResponse(sessions=infos)

    @convert_errors
    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
        await self._close(self._find(session_id))
        return CloseSessionResponse()

    @convert_errors
    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse:
        """Set the mode of future turns."""
        conversation = self._find(session_id)
        modes: dict[str, Mode] = {mode: mode for mode in MODES}
        mode = modes.get(mode_id)
        if mode is None:
            raise RequestError.invalid_params({"modeId": localize(text("acp.no_mode", name=repr(mode_id)))})
        conversation.mode = mode
        conversation.outbox.add(
            CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode_id)
        )
        return SetSessionModeResponse()

    @convert_errors
    async def prompt(self, session_id: str, prompt: list[Block], **kwargs: Any) -> PromptResponse:
        turn_end = await self._find(session_id).prompt(read_prompt(prompt))
        return PromptResponse(stop_reason=turn_end.reason, usage=_usage(turn_end.result.usage))

    @convert_errors
    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        conversation = self._open.get(session_id)
        if conversation is not None:
            await conversation.cancel()

    async def aclose(self) -> None:
        """Close every session; active runs stay resumable."""
        closing = [
            asyncio.ensure_future(self._close(conversation)) for conversation in tuple(self._open.values())
        ]
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_SECONDS)

    # ---- sessions

    async def _open_session(
        self,
        cwd: str,
        additional: Sequence[str] | None,
        servers: Sequence[McpServer] | None,
        session: str | None = None,
    ) -> ClientConversation:
        """Open a session of the client, or create one if `session` is None.

        Raises UsageError if a folder or the session does not exist, or the session belongs to another
        folder.
        """
        if session is not None and session in self._open:
            self._open[session].refuse_if_busy()
            await self._close(self._open[session])
        roots = roots_of(cwd, additional or ())
        disk = DiskWorkspace(roots)
        files = ClientFiles(disk, self._client, self._offer, roots)
        terminals = ClientTerminals(self._client) if self._offer.terminal else None
        settings = tuple(map(server_settings, servers or ()))
        opened = open_folder(files, settings, terminals=terminals, model=self._model)
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
        conversation = ClientConversation(
            self._client, session, opened, self._language, place=files.place, last_changes=files.last_changes
        )
        if terminals is not None:
            terminals.session, terminals.on_create = session, conversation.show_terminal
        self._open[session] = conversation
        return conversation

    def _find(self, session: str) -> ClientConversation:
        conversation = self._open.get(session)
        if conversation is None:
            raise refusal(Failure(kind="not_found", message=text("acp.not_open", session=repr(session))))
        return conversation

    async def _close(self, conversation: ClientConversation) -> None:
        self._open.pop(conversation.session, None)
        await conversation.close()

    def _modes(self, current: Mode) -> SessionModeState:
        return SessionModeState(
            current_mode_id=current,
            available_modes=[
                SessionMode(id=mode, name=localize(text(name)), description=localize(text(description)))
                for mode, (name, description) in MODES.items()
            ],
        )


def _check_folder(session: str, folder: str, expected: str) -> None:
    if folder != expected:
        message = text("acp.other_folder", session=session, folder=repr(folder))
        raise refusal(Failure(kind="not_found", message=message))


def _usage(used: Used) -> Usage:
    return Usage(
        total_tokens=used.prompt_tokens + used.completion_tokens,
        input_tokens=used.prompt_tokens,
        output_tokens=used.completion_tokens,
        cached_read_tokens=used.cached_tokens or None,
    )
