"""One configured MCP server: its connection, its restarts, and calls to it."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.events import Notice, ToolOutput
from daiku.domain.servers import ServerReport, ServerStatus
from daiku.domain.tools import MISSING_SERVER, ToolResult
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.mcp.agreement import McpHost, ServerConsent
from daiku.tools.mcp.definitions import cleaned
from daiku.tools.mcp.launch import Launch, McpServerError
from daiku.tools.tool import Answer, Ask, ToolContext, failed

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from daiku.tools.mcp.connection import McpConnection

LONGEST = 3600.0
"""Seconds after which a call ends even if it still tells of progress."""
PROGRESS_SECONDS = 0.2
PROGRESS_LINES = 300


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

    def progress(self, context: ToolContext) -> ProgressFnT:
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


log = logging.getLogger(__name__)

OPEN_SECONDS = 60.0
SIGN_IN_SECONDS = 300.0
PATIENCE = 300.0
"""Seconds without a sign of life (progress counts) after which a call is given up."""
ALIVE_SECONDS = 5.0
BACK_OFF = (0.0, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before the next start, by the number of failures in a row."""
WAIT_IN_CALL = 5.0
"""Seconds that a call waits for a restart; longer back-offs are reported."""


@dataclass(slots=True)
class _Life:
    """How the server's connection stands."""

    connection: McpConnection | None = None
    opening: asyncio.Task[None] | None = None
    failures: int = 0
    retry_at: float = 0.0
    why: Text = NO_TEXT


class McpServer:
    """Used by one event loop; started only where its agreement allows it."""

    def __init__(
        self, launch: Launch, agreement: ServerConsent, host: McpHost, patience: float = PATIENCE
    ) -> None:
        self.name = launch.name
        self.launch = launch
        self.agreement = agreement
        self._host = host
        self._patience = patience
        self._life = _Life()
        self._calls = OpenCalls(patience)
        self._closed = False

    def report(self) -> ServerReport:
        """Return the current state of the server."""
        names = tuple(f"{self.name}/{tool.name}" for tool in self.agreement.offered)
        status, why, hint = self._status()
        problems = joined("clauses", [why, *self.agreement.listing.problems])
        return ServerReport(name=self.name, status=status, tools=names, why=problems, hint=hint)

    def _status(self) -> tuple[ServerStatus, Text, Text]:
        life, consent = self._life, self.agreement.consent
        allow = text("mcp.allow_it", name=self.name)
        if self.agreement.problem:
            return "unusable", self.agreement.problem, NO_TEXT
        if consent is None:
            return "unasked", text("mcp.not_before_allowed"), allow
        if consent.answer == "reject":
            return "rejected", text("mcp.you_rejected"), allow
        if life.opening is not None:
            return "starting", NO_TEXT, NO_TEXT
        if life.connection is None:
            return "down", life.why or text("mcp.started_when_needed"), NO_TEXT
        if self.agreement.differences():
            return "changed", text("mcp.some_changed"), allow
        return "ready", NO_TEXT, NO_TEXT

    # -- life -------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """There is nothing to wait for: it runs, it failed, or it may not be started."""
        return not self.agreement.allowed or self._life.opening is None

    def start(self) -> None:
        """Begin to connect where it is allowed and due; returns at once."""
        life = self._life
        due = asyncio.get_running_loop().time() >= life.retry_at
        if (
            self.agreement.allowed
            and due
            and life.connection is None
            and life.opening is None
            and not self._closed
        ):
            life.opening = asyncio.create_task(self._open(), name=f"mcp open {self.name}")

    async def until_settled(self) -> None:
        """Wait for the start that is under way."""
        if self._life.opening is not None:
            await asyncio.wait({self._life.opening})

    async def close(self) -> None:
        """End it and what it started; it is not started again."""
        self._closed = True
        if self._life.opening is not None:
            self._life.opening.cancel()
            await asyncio.wait({self._life.opening})
        await self._drop()

    async def _open(self) -> None:
        life = self._life
        bound = asyncio.timeout(OPEN_SECONDS)
        try:
            await asyncio.to_thread(importlib.import_module, "daiku.tools.mcp.connection")
            # Lazy, and in a thread before: importing the SDK takes half a second that nothing should wait for.
            from daiku.tools.mcp.connection import Asks, McpConnection

            asks = Asks(self._calls.current_ask, self._relisted, partial(self._sign_in, bound))
            connection = McpConnection(self.launch, self._host.home, asks)
            try:
                async with bound:
                    await connection.wait_opened()
            except BaseException:
                await connection.close()
                raise
        except (McpServerError, TimeoutError, OSError) as error:
            self._failed(_why(error))
        else:
            life.connection, life.why = connection, NO_TEXT
            self._relisted()
            watching = asyncio.create_task(self._watch(connection))
            _WATCHING.add(watching)
            watching.add_done_callback(_WATCHING.discard)
        finally:
            life.opening = None

    async def _watch(self, connection: McpConnection) -> None:
        await connection.ended.wait()
        await self._lost(connection, connection.reason)

    async def _drop(self) -> None:
        connection, self._life.connection = self._life.connection, None
        if connection is not None:
            await connection.close()

    def _failed(self, why: Text) -> None:
        life = self._life
        life.failures += 1
        wait = BACK_OFF[min(life.failures, len(BACK_OFF) - 1)]
        life.retry_at = asyncio.get_running_loop().time() + wait
        life.why = why
        log.warning("MCP server %s: %s", self.name, life.why)
        if not self._closed:
            self._host.say(text("mcp.unusable_now", name=self.name, why=life.why))

    def _relisted(self) -> None:
        connection = self._life.connection
        self.agreement.update_listing(self.agreement.listing if connection is None else connection.listing)

    async def _sign_in(self, bound: asyncio.Timeout, address: str) -> None:
        told = text("mcp.sign_in", name=self.name, address=address)
        if self._calls.sign_in(told):  # in the middle of a call: it wants more rights
            return
        if not self._host.person() or self._life.opening is None:
            raise McpServerError(text("mcp.sign_in_needed", name=self.name), gone=True)
        bound.reschedule(asyncio.get_running_loop().time() + SIGN_IN_SECONDS)
        self._host.say(told)

    # -- calls ------------------------------------------------------------------------------

    async def call(self, tool: str, args: JsonObject, context: ToolContext) -> ToolResult:
        """Call a tool that is `offered`; what goes wrong is a result."""

        async def work(connection: McpConnection, call: Call) -> ToolResult:
            if all(offered.name != tool for offered in self.agreement.offered):
                return failed(
                    f"{self.name} no longer offers {tool} as the person allowed it. They will be asked."
                )
            return await connection.call(tool, args, call.progress(context))

        return await self._during(work, context)

    async def use(
        self, work: Callable[[McpConnection], Awaitable[ToolResult]], context: ToolContext
    ) -> ToolResult:
        """Run `work` on the connection, with the limits and error handling of a call."""
        return await self._during(lambda connection, _: work(connection), context)

    async def _during(
        self, work: Callable[[McpConnection, Call], Awaitable[ToolResult]], context: ToolContext
    ) -> ToolResult:
        """Carry out `work` with a clock that signs of life set back."""
        try:
            connection = await self._connected()
        except McpServerError as broken:
            return self._unavailable(f"The MCP server {self.name} cannot be used now: {broken.why}.")
        clock = asyncio.timeout(self._patience)
        try:
            async with clock:
                with self._calls.track(context, clock) as call:
                    result = await work(connection, call)
        except TimeoutError:
            if not clock.expired():
                raise
            return await self._hung(connection)
        except McpServerError as broken:
            return await self._broke(broken, connection)
        self._life.failures = 0
        return result

    async def _connected(self) -> McpConnection:
        """Return the connection, reconnected if it was lost. Raises McpServerError."""
        life = self._life
        if life.connection is None:
            wait = life.retry_at - asyncio.get_running_loop().time()
            if wait > WAIT_IN_CALL:
                raise McpServerError(
                    joined("clauses", [life.why, text("mcp.tried_again", seconds=f"{wait:.0f}")]), gone=True
                )
            await asyncio.sleep(max(0.0, wait))
            self.start()
            await self.until_settled()
        if life.connection is None:
            raise McpServerError(life.why or self.agreement.problem or text("mcp.not_allowed"), gone=True)
        return life.connection

    async def _hung(self, connection: McpConnection) -> ToolResult:
        seconds = f"{self._patience:g} s"
        if await connection.alive(ALIVE_SECONDS):
            return failed(f"{self.name} gave no sign of life for {seconds}; the call was cancelled.")
        await self._lost(connection, text("mcp.no_answer"))
        return self._unavailable(
            f"{self.name} gave no sign of life for {seconds} and answers nothing else; it was ended and is"
            " started again when it is next called. Whether the call had an effect is not known."
        )

    async def _broke(self, broken: McpServerError, connection: McpConnection) -> ToolResult:
        if not broken.gone:
            return ToolResult(ok=False, text=f"{self.name}: {cleaned(broken.why, 2000)}", untrusted=True)
        await self._lost(connection, broken.why)
        why = cleaned(broken.why, 500)
        return self._unavailable(
            f"The MCP server {self.name} was lost during this call ({why}). Whether it had an effect is"
            " not known: look before you try again. It is started again when it is next called.",
            untrusted=True,
        )

    def _unavailable(self, why: str, *, untrusted: bool = False) -> ToolResult:
        """Return the result of a call that the server did not answer. The verdict on the run reads its data."""
        return ToolResult(ok=False, text=why, data={MISSING_SERVER: self.name}, untrusted=untrusted)

    async def _lost(self, connection: McpConnection, why: Text) -> None:
        if self._life.connection is connection:
            self._life.connection = None
            self._failed(why)
            await connection.close()


_WATCHING: set[asyncio.Task[None]] = set()
"""Tasks that nothing else holds."""


def _why(error: McpServerError | TimeoutError | OSError) -> Text:
    match error:
        case McpServerError():
            return error.why
        case TimeoutError():
            return text("mcp.not_in_time", seconds=f"{OPEN_SECONDS:g}")
        case OSError():
            return Text(cleaned(str(error), 500))
