"""What is sent to the client, in order; text that waits is put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from acp import Client
from acp.schema import AgentMessageChunk, AgentThoughtChunk, TextContentBlock, ToolCallProgress

from daiku.fronts.acp.updates import Update

log = logging.getLogger(__name__)


class Outbox:
    """The updates of one session. `put` never waits: a client that reads slowly gets fewer and longer pieces."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session
        self._waiting: deque[Update] = deque()
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._task = asyncio.ensure_future(self._send())

    def put(self, update: Update) -> None:
        """Send `update` after everything before it."""
        if self._task.done():
            return
        if not (self._waiting and _joined(self._waiting[-1], update)):
            self._waiting.append(update)
        self._empty.clear()
        self._more.set()

    async def drained(self) -> None:
        """Wait until everything was sent, or the client is gone."""
        await self._empty.wait()

    async def close(self) -> None:
        """Send nothing more."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._empty.set()

    async def _send(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                update = self._waiting.popleft()
                try:
                    await self._client.session_update(self._session, update)
                except ConnectionError:
                    log.info("the client is gone: %s is told nothing more", self._session)
                    self._waiting.clear()
            self._empty.set()


def _joined(last: Update, update: Update) -> bool:
    """True where `update` went into `last`, which nobody has seen yet."""
    match last, update:
        case (
            AgentMessageChunk(content=TextContentBlock() as held) | AgentThoughtChunk(content=TextContentBlock() as held),
            AgentMessageChunk(content=TextContentBlock() as more) | AgentThoughtChunk(content=TextContentBlock() as more),
        ) if type(last) is type(update) and last.message_id == update.message_id:  # fmt: skip
            held.text += more.text
            return True
        case ToolCallProgress(), ToolCallProgress() if last.tool_call_id == update.tool_call_id:
            given = update.model_dump(exclude_none=True, exclude={"session_update", "tool_call_id"})
            for name in given:
                setattr(last, name, getattr(update, name))
            return True
        case _:
            return False
