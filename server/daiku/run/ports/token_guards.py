"""Token guards of one run: checked before each model and tool call, corrected by actual usage."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import Notice
from daiku.domain.messages import ModelEvent, ModelRequest, Reply, Usage
from daiku.domain.tools import ToolCall, ToolResult
from daiku.guard.guardrails.tokens import TokenGuard
from daiku.guard.rules.guardrails.written import call_text
from daiku.models.tokens import estimate, estimate_message, estimate_request
from daiku.run.live import LiveRun
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.texts.text import text


@dataclass(slots=True)
class TokenMeter:
    """Token usage of a run, counted with all its token guards.

    `reached`: the reason that no more calls are allowed.
    """

    live: LiveRun
    guards: tuple[TokenGuard, ...]
    reached: Failure | None = None
    _tool_tokens: int = field(default=0, init=False)
    """Tokens of tool calls since the last request, which the next request includes."""

    async def take(self, tokens: int) -> Failure | None:
        """Count tokens before they are used, with every guard or with none."""
        session = self.live.log.session
        for index, guard in enumerate(self.guards):
            failure = self.reached or await guard.take(session, tokens)
            if failure is not None:
                for earlier in self.guards[:index]:
                    await earlier.add(session, -tokens)
                self.reached = self.live.tree.budget.refused = failure
                return failure
        await self._warn()
        return None

    async def _add(self, tokens: int) -> None:
        for guard in self.guards:
            await guard.add(self.live.log.session, tokens)

    async def _warn(self) -> None:
        for guard in self.guards:
            if (message := await guard.warning(self.live.log.session)) is not None:
                self.live.record(Notice(level="warning", text=message))

    async def tool(self, call: ToolCall) -> ToolResult | None:
        """Count a call before it is executed; return its result if it is not allowed."""
        if not self.guards:
            return None
        tokens = estimate(call_text(call))
        if await self.take(tokens) is not None:
            return ToolResult(outcome="not_run", text=text("guardrails.tokens_not_run"))
        self._tool_tokens += tokens
        return None

    async def result(self, result: ToolResult) -> None:
        """Count a tool result."""
        if self.guards:
            tokens = estimate(result.text)
            self._tool_tokens += tokens
            await self._add(tokens)

    @asynccontextmanager
    async def request(self, request: ModelRequest) -> AsyncGenerator[Callable[[ModelEvent], None]]:
        """Count a request while it runs, then its usage; yield a listener for pieces.

        Raises DaikuError (limit).
        """
        estimated, tool_tokens = estimate_request(request), self._tool_tokens
        reserved = max(estimated - tool_tokens, 0)
        if (reached := await self.take(reserved)) is not None:
            raise DaikuError(reached)
        self._tool_tokens, usage = 0, _RequestUsage()
        try:
            yield usage.hear
        finally:
            counted = reserved + tool_tokens
            if usage.tokens is not None:
                await self._add((usage.tokens or estimated + usage.estimated) - counted)
            elif not usage.begun:
                self._tool_tokens = tool_tokens
                await self._add(-reserved)


@dataclass(slots=True)
class _RequestUsage:
    """Usage of a request: whether a reply began, the provider's token count, and the reply's estimate."""

    begun: bool = False
    tokens: int | None = None
    estimated: int = 0

    def hear(self, piece: ModelEvent) -> None:
        self.begun = True
        if isinstance(piece, Reply):
            self.tokens = piece.usage.prompt_tokens + piece.usage.completion_tokens
            self.estimated = estimate_message(piece.message)


async def count_routing(services: RunServices, agent: Agent, session: str, usage: Usage | None) -> None:
    """Count the tokens that a router used before the run of `agent` started."""
    tokens = usage.prompt_tokens + usage.completion_tokens if usage is not None else 0
    for guard in (*services.guardrails, *agent.guardrails):
        if isinstance(guard, TokenGuard):
            await guard.add(session, tokens)


def token_meter(live: LiveRun) -> TokenMeter:
    """Return the meter of a run. Usage before a restart counts again for guards that count in this process."""
    guards: dict[int, TokenGuard] = {}
    run: LiveRun | None = live
    while run is not None:
        for guard in (*run.log.services.guardrails, *run.log.agent.guardrails):
            if isinstance(guard, TokenGuard):
                guards[id(guard)] = guard
        run = live.tree.under_way.get(run.log.parent) if run.log.parent is not None else None
    usage = live.record.state.spending.usage
    for guard in guards.values():
        guard.begin(live.log.session, usage.prompt_tokens + usage.completion_tokens)
    return TokenMeter(live, tuple(guards.values()))
