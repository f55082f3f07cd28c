"""Ordered queue of updates to the client; waiting text chunks are merged."""

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
    """Queue of one session's updates. `add` never waits: for a slow client, adjacent text chunks are merged."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session
        self._waiting: deque[Update] = deque()
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._task = asyncio.ensure_future(self._send())

    def add(self, update: Update) -> None:
        """Send `update` after all earlier updates."""
        if self._task.done():
            return
        if not (self._waiting and _merge_into(self._waiting[-1], update)):
            self._waiting.append(update)
        self._empty.clear()
        self._more.set()

    async def drained(self) -> None:
        """Wait until the queue is empty or the client has disconnected."""
        await self._empty.wait()

    async def close(self) -> None:
        """Stop sending."""
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


def _merge_into(last: Update, update: Update) -> bool:
    """Merge `update` into the unsent update `last` and return True, or return False."""
    match last, update:
        case (
            AgentMessageChunk(content=TextContentBlock() as content) | AgentThoughtChunk(content=TextContentBlock() as content),
            AgentMessageChunk(content=TextContentBlock() as more) | AgentThoughtChunk(content=TextContentBlock() as more),
        ) if type(last) is type(update) and last.message_id == update.message_id:  # fmt: skip
            content.text += more.text
            return True
        case ToolCallProgress(), ToolCallProgress() if last.tool_call_id == update.tool_call_id:
            fields = update.model_dump(exclude_none=True, exclude={"session_update", "tool_call_id"})
            for name in fields:
                setattr(last, name, getattr(update, name))
            return True
        case _:
            return False
