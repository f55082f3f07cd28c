"""Budget shared by a tree of runs; every model call reserves its share first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeAlias

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.messages import ModelEvent, ModelRequest, Reply, Usage
from daiku.models.families import Model
from daiku.run.rules.budget import (
    Budget,
    Quote,
    add_earlier_use,
    reserve,
    rounds_used_up,
    settle,
    should_wait,
)
from daiku.texts.text import Text, text

UNKNOWN_COST = Quote(0, 0)


@dataclass(slots=True)
class Reservation:
    """A reserved model call: its output limit in tokens (0: the model's own), and its usage."""

    max_output: int
    usage: Usage | None = None


@dataclass(slots=True)
class RunBudget:
    """The current budget of a tree of runs."""

    budget: Budget
    refused: Failure | None = None
    """Reason that the last refused call exceeded the budget."""
    _waiting: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])

    @asynccontextmanager
    async def spend(self, quote: Quote) -> AsyncGenerator[Reservation]:
        """Reserve a call's cost for the block; wait while other calls hold reservations.

        Raises DaikuError (limit).
        """
        while should_wait(self.budget, quote):
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        reserved = reserve(self.budget, quote)
        if isinstance(reserved, Failure):
            self.refused = reserved
            raise DaikuError(reserved)
        self.budget, hold = reserved
        reservation = Reservation(hold.max_output)
        try:
            yield reservation
        finally:
            self.budget = settle(self.budget, hold, reservation.usage)
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                if not each.done():
                    each.set_result(None)

    def add_earlier_use(self, usage: Usage, rounds: int) -> None:
        """Add the usage of a nested run before a restart, which its parent has not recorded."""
        self.budget = add_earlier_use(self.budget, usage, rounds)

    def find_exhaustion(self) -> Failure | None:
        """Return the reason that no further model call is allowed, or None."""
        return self.refused or rounds_used_up(self.budget)

    def turn(self) -> None:
        """Count one model call. Raises DaikuError if the tree of runs has no rounds left."""
        if (failure := rounds_used_up(self.budget)) is not None:
            self.refused = failure
            raise DaikuError(failure)
        self.budget = self.budget._replace(rounds=self.budget.rounds + 1)


Counting: TypeAlias = Callable[[ModelRequest], AbstractAsyncContextManager[Callable[[ModelEvent], None]]]
"""Context manager for a request in progress; its value receives each piece. Raises DaikuError of kind limit."""


def _ignore(_piece: ModelEvent) -> None:
    pass


def count_nothing(_request: ModelRequest) -> AbstractAsyncContextManager[Callable[[ModelEvent], None]]:
    """Return a counter that ignores everything."""
    return nullcontext(_ignore)


@dataclass(slots=True)
class Metered:
    """Model behind a budget: each call is reserved, then counted.

    `tell` is called once if the price is unknown.
    """

    model: Model
    shared: RunBudget
    tell: Callable[[Text], None]
    counted: Counting = count_nothing
    _has_told_price: bool = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the model's pieces. Raises DaikuError of kind limit before sending a request."""
        budget = self.shared.budget
        quote = self.model.quote(request) if budget.is_limited else UNKNOWN_COST
        if budget.limits.max_cost and quote.prompt_cost is None and not self._has_told_price:
            self._has_told_price = True
            self.tell(text("runs.no_price", model=self.model.name))
        self.shared.turn()
        async with self.shared.spend(quote) as reservation:
            if reservation.max_output:
                request = replace(request, max_output=reservation.max_output)
            async with self.counted(request) as hear:
                pieces = self.model.stream(request)
                try:
                    async for piece in pieces:
                        hear(piece)
                        if isinstance(piece, Reply):
                            reservation.usage = piece.usage
                        yield piece
                finally:  # closes the connection even if the consumer stopped early
                    if isinstance(pieces, AsyncGenerator):
                        await pieces.aclose()
