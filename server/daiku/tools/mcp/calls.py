"""Calls in progress at one server: their timeouts, their progress, and questions to the person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from daiku.dataclass import dataclass
from daiku.domain.events import Notice, ToolOutput
from daiku.texts.text import Text
from daiku.tools.mcp.definitions import cleaned
from daiku.tools.tool import Answer, Ask, ToolContext

LONGEST = 3600.0
"""Seconds after which a call ends even if it still tells of progress."""
PROGRESS_SECONDS = 0.2
PROGRESS_LINES = 300


class Progress(Protocol):
    """Hears how far a call is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(slots=True, eq=False)
class Call:
    """One call: `clock` ends it when nothing is heard for `patience` seconds, `until` in any case."""

    ask: Ask | None
    tell: Callable[[Text], None]
    clock: asyncio.Timeout
    patience: float
    until: float
    told: float = 0.0
    lines: int = 0

    def reset_timeout(self, *, waits: bool = False) -> None:
        """Reset the timeout after activity, or suspend it while a person is asked (`waits`)."""
        now = asyncio.get_running_loop().time()
        self.clock.reschedule(self.until if waits else min(self.until, now + self.patience))

    def progress(self, context: ToolContext) -> Progress:
        """Return a callback that emits the server's progress as output of the call, rate-limited."""

        async def told(progress: float, total: float | None, message: str | None) -> None:
            self.reset_timeout()
            now = asyncio.get_running_loop().time()
            if self.lines >= PROGRESS_LINES or now < self.told + PROGRESS_SECONDS:
                return
            self.told, self.lines = now, self.lines + 1
            share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            said = f"  {cleaned(message, 300)}" if message else ""
            context.emit(ToolOutput(id=context.call_id, text=f"{share}{said}\n"))

        return told


class OpenCalls:
    """The calls under way, oldest first."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._open: list[Call] = []

    @contextmanager
    def track(self, context: ToolContext, clock: asyncio.Timeout) -> Generator[Call]:
        """Register a call for the duration of the block."""
        until = asyncio.get_running_loop().time() + LONGEST
        call = Call(context.ask, partial(_tell, context), clock, self._patience, until)
        self._open.append(call)
        try:
            yield call
        finally:
            self._open.remove(call)

    def sign_in(self, said: Text) -> bool:
        """Ask the person behind the latest open call to sign in, and suspend that call's idle timeout
        meanwhile. Return False if no open call has a person to ask."""
        call = next((c for c in reversed(self._open) if c.ask is not None), None)
        if call is None:
            return False
        call.reset_timeout(waits=True)
        call.tell(said)
        return True

    def current_ask(self) -> Ask | None:
        """Return a function that asks the person of the latest call; None if nobody can be asked. (A server
        does not say which call its question belongs to.)"""
        call = next((c for c in reversed(self._open) if c.ask is not None), None)
        if call is None or call.ask is None:
            return None
        asking = call.ask

        async def ask(question: Text, choices: tuple[Text, ...]) -> Answer:
            call.reset_timeout(waits=True)
            try:
                return await asking(question, choices)
            finally:
                call.reset_timeout()

        return ask


def _tell(context: ToolContext, said: Text) -> None:
    context.emit(Notice(level="warning", text=said))
