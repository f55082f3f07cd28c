"""Token guards of one run: asked before every call of its model and its tools, corrected by what was used."""

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
    """What a run used, as all its token guards count it. `reached`: why no more may be called."""

    live: LiveRun
    guards: tuple[TokenGuard, ...]
    reached: Failure | None = None
    _of_tools: int = field(default=0, init=False)
    """Tokens of tools since the last request: the next one holds them again."""

    async def take(self, tokens: int) -> Failure | None:
        """Count tokens that are about to be used, with every guard or with none."""
        session = self.live.log.session
        for at, guard in enumerate(self.guards):
            found = self.reached or await guard.take(session, tokens)
            if found is not None:
                for earlier in self.guards[:at]:
                    await earlier.add(session, -tokens)
                self.reached = self.live.tree.budget.refused = found
                return found
        await self._warn()
        return None

    async def _add(self, tokens: int) -> None:
        for guard in self.guards:
            await guard.add(self.live.log.session, tokens)

    async def _warn(self) -> None:
        for guard in self.guards:
            if (said := await guard.warning(self.live.log.session)) is not None:
                self.live.record(Notice(level="warning", text=said))

    async def tool(self, call: ToolCall) -> ToolResult | None:
        """Count a call that is about to be carried out; its result where it may not be."""
        if not self.guards:
            return None
        tokens = estimate(call_text(call))
        if await self.take(tokens) is not None:
            return ToolResult(outcome="not_run", text=text("guardrails.tokens_not_run"))
        self._of_tools += tokens
        return None

    async def result(self, result: ToolResult) -> None:
        """Count what a tool answered."""
        if self.guards:
            tokens = estimate(result.text)
            self._of_tools += tokens
            await self._add(tokens)

    @asynccontextmanager
    async def request(self, request: ModelRequest) -> AsyncGenerator[Callable[[ModelEvent], None]]:
        """Count a request while it runs, then its usage; yield a listener for pieces. Raises DaikuError (limit)."""
        asked, of_tools = estimate_request(request), self._of_tools
        held = max(asked - of_tools, 0)
        if (reached := await self.take(held)) is not None:
            raise DaikuError(reached)
        self._of_tools, used = 0, _Used()
        try:
            yield used.hear
        finally:
            counted = held + of_tools
            if used.tokens is not None:
                await self._add((used.tokens or asked + used.estimated) - counted)
            elif not used.begun:
                self._of_tools = of_tools
                await self._add(-held)


@dataclass(slots=True)
class _Used:
    """What came of a request: whether anything did, what the provider counted, and the estimate of the reply."""

    begun: bool = False
    tokens: int | None = None
    estimated: int = 0

    def hear(self, piece: ModelEvent) -> None:
        self.begun = True
        if isinstance(piece, Reply):
            self.tokens = piece.usage.prompt_tokens + piece.usage.completion_tokens
            self.estimated = estimate_message(piece.message)


async def count_routing(services: RunServices, agent: Agent, session: str, used: Usage | None) -> None:
    """Count what a router used before the run of `agent` began."""
    tokens = used.prompt_tokens + used.completion_tokens if used is not None else 0
    for guard in (*services.guardrails, *agent.guardrails):
        if isinstance(guard, TokenGuard):
            await guard.add(session, tokens)


def token_meter(live: LiveRun) -> TokenMeter:
    """The meter of a run; what it used before a restart counts again where only this process counts."""
    found: dict[int, TokenGuard] = {}
    around: LiveRun | None = live
    while around is not None:
        for guard in (*around.log.services.guardrails, *around.log.agent.guardrails):
            if isinstance(guard, TokenGuard):
                found[id(guard)] = guard
        around = live.tree.under_way.get(around.log.parent) if around.log.parent is not None else None
    usage = live.record.state.spending.usage
    for guard in found.values():
        guard.begin(live.log.session, usage.prompt_tokens + usage.completion_tokens)
    return TokenMeter(live, tuple(found.values()))
