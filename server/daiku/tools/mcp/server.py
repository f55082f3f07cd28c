"""A configured MCP server: its connection, its restarts, and its calls."""

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
from daiku.tools.mcp.definitions import clean_text
from daiku.tools.mcp.launch import Launch, McpServerError
from daiku.tools.tool import Answer, Ask, ToolContext, build_failure

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from daiku.tools.mcp.connection import McpConnection

MAX_CALL_SECONDS = 3600.0
"""Seconds after which a call ends, even if it reports progress."""
PROGRESS_SECONDS = 0.2
"""Seconds between two progress lines."""
PROGRESS_LINES = 300
"""Progress lines of one call."""


@dataclass(slots=True, eq=False)
class Call:
    """A call with an idle timeout.

    `clock` ends it after `idle_seconds` without activity, and at `deadline` in any case.
    """

    ask: Ask | None
    notify: Callable[[Text], None]
    clock: asyncio.Timeout
    idle_seconds: float
    deadline: float
    last_progress: float = 0.0
    lines: int = 0

    def reset_timeout(self, *, waits: bool = False) -> None:
        """Restart the idle timeout after activity, or suspend it while the user is asked (`waits`)."""
        now = asyncio.get_running_loop().time()
        self.clock.reschedule(self.deadline if waits else min(self.deadline, now + self.idle_seconds))

    def build_progress_callback(self, context: ToolContext) -> ProgressFnT:
        """Return a callback that emits the server's progress as output of the call, rate-limited."""

        async def emit_progress(progress: float, total: float | None, message: str | None) -> None:
            self.reset_timeout()
            now = asyncio.get_running_loop().time()
            if self.lines >= PROGRESS_LINES or now < self.last_progress + PROGRESS_SECONDS:
                return
            self.last_progress, self.lines = now, self.lines + 1
            share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            message_text = f"  {clean_text(message, 300)}" if message else ""
            context.emit(ToolOutput(id=context.call_id, text=f"{share}{message_text}\n"))

        return emit_progress


class OpenCalls:
    """The calls in progress, the oldest first."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._open: list[Call] = []

    @contextmanager
    def track(self, context: ToolContext, clock: asyncio.Timeout) -> Generator[Call]:
        """Register a call for the duration of the block."""
        deadline = asyncio.get_running_loop().time() + MAX_CALL_SECONDS
        call = Call(context.ask, partial(_emit_notice, context), clock, self._idle_seconds, deadline)
        self._open.append(call)
        try:
            yield call
        finally:
            self._open.remove(call)

    def ask_to_sign_in(self, notice: Text) -> bool:
        """Ask the user of the latest call to sign in, and suspend that call's idle timeout.

        Returns False if no call has a user to ask.
        """
        call = next((c for c in reversed(self._open) if c.ask is not None), None)
        if call is None:
            return False
        call.reset_timeout(waits=True)
        call.notify(notice)
        return True

    def find_ask(self) -> Ask | None:
        """Return a function that asks the user of the latest call; None if nobody can be asked.

        A server does not say which call its question belongs to.
        """
        call = next((c for c in reversed(self._open) if c.ask is not None), None)
        if call is None or call.ask is None:
            return None
        ask_user = call.ask

        async def ask(question: Text, choices: tuple[Text, ...]) -> Answer:
            call.reset_timeout(waits=True)
            try:
                return await ask_user(question, choices)
            finally:
                call.reset_timeout()

        return ask


def _emit_notice(context: ToolContext, notice: Text) -> None:
    context.emit(Notice(level="warning", text=notice))


log = logging.getLogger(__name__)

OPEN_SECONDS = 60.0
"""Seconds that a server may take to start."""
SIGN_IN_SECONDS = 300.0
"""Seconds to wait for the user's sign-in."""
IDLE_SECONDS = 300.0
"""Seconds without activity (progress counts) after which a call is cancelled."""
ALIVE_SECONDS = 5.0
"""Seconds to wait for an answer when checking if a server is alive."""
RETRY_DELAYS = (0.0, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before the next start, by the number of failures in a row."""
MAX_WAIT_IN_CALL = 5.0
"""Seconds that a call waits for a restart. A longer delay is reported."""


@dataclass(slots=True)
class _ConnectionState:
    """The state of a server's connection, and its retries."""

    connection: McpConnection | None = None
    opening: asyncio.Task[None] | None = None
    failures: int = 0
    retry_at: float = 0.0
    reason: Text = NO_TEXT


class McpServer:
    """A server of one event loop. It starts only with the user's consent."""

    def __init__(
        self, launch: Launch, agreement: ServerConsent, host: McpHost, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self.name = launch.name
        self.launch = launch
        self.agreement = agreement
        self._host = host
        self._idle_seconds = idle_seconds
        self._state = _ConnectionState()
        self._calls = OpenCalls(idle_seconds)
        self._closed = False

    def report(self) -> ServerReport:
        """Return the current state of the server."""
        names = tuple(f"{self.name}/{tool.name}" for tool in self.agreement.offered_tools)
        status, reason, hint = self._find_status()
        problems = joined("clauses", [reason, *self.agreement.listing.problems])
        return ServerReport(name=self.name, status=status, tools=names, why=problems, hint=hint)

    def _find_status(self) -> tuple[ServerStatus, Text, Text]:
        state, consent = self._state, self.agreement.consent
        allow = text("mcp.allow_it", name=self.name)
        if self.agreement.problem:
            return "unusable", self.agreement.problem, NO_TEXT
        if consent is None:
            return "unasked", text("mcp.not_before_allowed"), allow
        if consent.answer == "reject":
            return "rejected", text("mcp.you_rejected"), allow
        if state.opening is not None:
            return "starting", NO_TEXT, NO_TEXT
        if state.connection is None:
            return "down", state.reason or text("mcp.started_when_needed"), NO_TEXT
        if self.agreement.describe_changes():
            return "changed", text("mcp.some_changed"), allow
        return "ready", NO_TEXT, NO_TEXT

    # -- life -------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """True if there is nothing to wait for: it runs, it failed, or it may not start."""
        return not self.agreement.is_allowed or self._state.opening is None

    def start(self) -> None:
        """Begin to connect if that is allowed and due. Returns at once."""
        state = self._state
        is_due = asyncio.get_running_loop().time() >= state.retry_at
        if (
            self.agreement.is_allowed
            and is_due
            and state.connection is None
            and state.opening is None
            and not self._closed
        ):
            state.opening = asyncio.create_task(self._open(), name=f"mcp open {self.name}")

    async def wait_settled(self) -> None:
        """Wait for the current start."""
        if self._state.opening is not None:
            await asyncio.wait({self._state.opening})

    async def close(self) -> None:
        """Stop the server for good."""
        self._closed = True
        if self._state.opening is not None:
            self._state.opening.cancel()
            await asyncio.wait({self._state.opening})
        await self._close_connection()

    async def _open(self) -> None:
        state = self._state
        open_timeout = asyncio.timeout(OPEN_SECONDS)
        try:
            await asyncio.to_thread(importlib.import_module, "daiku.tools.mcp.connection")
            # when used: importing the SDK takes half a second, so a thread did it first.
            from daiku.tools.mcp.connection import ConnectionHooks, McpConnection

            hooks = ConnectionHooks(
                self._calls.find_ask, self._update_listing, partial(self._sign_in, open_timeout)
            )
            connection = McpConnection(self.launch, self._host.home, hooks)
            try:
                async with open_timeout:
                    await connection.wait_opened()
            except BaseException:
                await connection.close()
                raise
        except (McpServerError, TimeoutError, OSError) as error:
            self._record_failure(_describe_error(error))
        else:
            state.connection, state.reason = connection, NO_TEXT
            self._update_listing()
            watcher = asyncio.create_task(self._watch(connection))
            _WATCHING.add(watcher)
            watcher.add_done_callback(_WATCHING.discard)
        finally:
            state.opening = None

    async def _watch(self, connection: McpConnection) -> None:
        await connection.ended.wait()
        await self._handle_loss(connection, connection.reason)

    async def _close_connection(self) -> None:
        connection, self._state.connection = self._state.connection, None
        if connection is not None:
            await connection.close()

    def _record_failure(self, reason: Text) -> None:
        state = self._state
        state.failures += 1
        delay = RETRY_DELAYS[min(state.failures, len(RETRY_DELAYS) - 1)]
        state.retry_at = asyncio.get_running_loop().time() + delay
        state.reason = reason
        log.warning("MCP server %s: %s", self.name, state.reason)
        if not self._closed:
            self._host.notify(text("mcp.unusable_now", name=self.name, why=state.reason))

    def _update_listing(self) -> None:
        connection = self._state.connection
        self.agreement.update_listing(self.agreement.listing if connection is None else connection.listing)

    async def _sign_in(self, open_timeout: asyncio.Timeout, address: str) -> None:
        notice = text("mcp.sign_in", name=self.name, address=address)
        if self._calls.ask_to_sign_in(notice):  # during a call: the server needs more rights
            return
        if not self._host.has_user() or self._state.opening is None:
            raise McpServerError(text("mcp.sign_in_needed", name=self.name), is_lost=True)
        open_timeout.reschedule(asyncio.get_running_loop().time() + SIGN_IN_SECONDS)
        self._host.notify(notice)

    # -- calls ------------------------------------------------------------------------------

    async def call(self, tool: str, args: JsonObject, context: ToolContext) -> ToolResult:
        """Call an offered tool. Errors are returned as a result."""

        async def work(connection: McpConnection, call: Call) -> ToolResult:
            if all(offered.name != tool for offered in self.agreement.offered_tools):
                return build_failure(
                    f"{self.name} no longer offers {tool} as the person allowed it. They will be asked."
                )
            return await connection.call(tool, args, call.build_progress_callback(context))

        return await self._run_with_timeout(work, context)

    async def use(
        self, work: Callable[[McpConnection], Awaitable[ToolResult]], context: ToolContext
    ) -> ToolResult:
        """Run `work` on the connection, with the limits and error handling of a call."""
        return await self._run_with_timeout(lambda connection, _: work(connection), context)

    async def _run_with_timeout(
        self, work: Callable[[McpConnection, Call], Awaitable[ToolResult]], context: ToolContext
    ) -> ToolResult:
        """Run `work` with the idle timeout of a call."""
        try:
            connection = await self._connect()
        except McpServerError as error:
            return self._build_unavailable(f"The MCP server {self.name} cannot be used now: {error.message}.")
        clock = asyncio.timeout(self._idle_seconds)
        try:
            async with clock:
                with self._calls.track(context, clock) as call:
                    result = await work(connection, call)
        except TimeoutError:
            if not clock.expired():
                raise
            return await self._handle_idle(connection)
        except McpServerError as error:
            return await self._handle_error(error, connection)
        self._state.failures = 0
        return result

    async def _connect(self) -> McpConnection:
        """Return the connection, reconnected if it was lost. Raises McpServerError."""
        state = self._state
        if state.connection is None:
            delay = state.retry_at - asyncio.get_running_loop().time()
            if delay > MAX_WAIT_IN_CALL:
                raise McpServerError(
                    joined("clauses", [state.reason, text("mcp.tried_again", seconds=f"{delay:.0f}")]),
                    is_lost=True,
                )
            await asyncio.sleep(max(0.0, delay))
            self.start()
            await self.wait_settled()
        if state.connection is None:
            raise McpServerError(
                state.reason or self.agreement.problem or text("mcp.not_allowed"), is_lost=True
            )
        return state.connection

    async def _handle_idle(self, connection: McpConnection) -> ToolResult:
        seconds = f"{self._idle_seconds:g} s"
        if await connection.is_alive(ALIVE_SECONDS):
            return build_failure(f"{self.name} gave no sign of life for {seconds}; the call was cancelled.")
        await self._handle_loss(connection, text("mcp.no_answer"))
        return self._build_unavailable(
            f"{self.name} gave no sign of life for {seconds} and answers nothing else; it was ended and is"
            " started again when it is next called. Whether the call had an effect is not known."
        )

    async def _handle_error(self, error: McpServerError, connection: McpConnection) -> ToolResult:
        if not error.is_lost:
            return ToolResult(
                ok=False, text=f"{self.name}: {clean_text(error.message, 2000)}", untrusted=True
            )
        await self._handle_loss(connection, error.message)
        reason = clean_text(error.message, 500)
        return self._build_unavailable(
            f"The MCP server {self.name} was lost during this call ({reason}). Whether it had an effect is"
            " not known: look before you try again. It is started again when it is next called.",
            untrusted=True,
        )

    def _build_unavailable(self, reason: str, *, untrusted: bool = False) -> ToolResult:
        """Build the result of a call that the server did not answer. The run's verdict reads its data."""
        return ToolResult(ok=False, text=reason, data={MISSING_SERVER: self.name}, untrusted=untrusted)

    async def _handle_loss(self, connection: McpConnection, reason: Text) -> None:
        if self._state.connection is connection:
            self._state.connection = None
            self._record_failure(reason)
            await connection.close()


_WATCHING: set[asyncio.Task[None]] = set()
"""References that keep the tasks alive."""


def _describe_error(error: McpServerError | TimeoutError | OSError) -> Text:
    match error:
        case McpServerError():
            return error.message
        case TimeoutError():
            return text("mcp.not_in_time", seconds=f"{OPEN_SECONDS:g}")
        case OSError():
            return Text(clean_text(str(error), 500))
