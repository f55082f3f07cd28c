"""The budget of a tree of runs while it is under way: shared, and asked before every call of a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeAlias

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.messages import ModelEvent, ModelRequest, Reply, Usage
from daiku.models.families import Model
from daiku.run.rules.budget import Budget, Quote, add_earlier_use, may_wait, reserve, rounds_used_up, settle
from daiku.texts.text import Text, text

NOTHING_KNOWN = Quote(0, 0)


@dataclass(slots=True)
class Reservation:
    """One call that was reserved: the output limit to ask for (0: the model's own), and what it used."""

    max_output: int
    usage: Usage | None = None


@dataclass(slots=True)
class RunBudget:
    """The present budget. A nested run shares that of the run around it."""

    budget: Budget
    refused: Failure | None = None
    """Why a call was last not within what is left."""
    _waiting: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])

    @asynccontextmanager
    async def spend(self, quote: Quote) -> AsyncGenerator[Reservation]:
        """Reserve what the call can come to while the block runs; wait for other calls. Raises DaikuError (limit)."""
        while may_wait(self.budget, quote):
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        found = reserve(self.budget, quote)
        if isinstance(found, Failure):
            self.refused = found
            raise DaikuError(found)
        self.budget, hold = found
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
        """Count what a nested run used before a restart; its parent's record does not hold it yet."""
        self.budget = add_earlier_use(self.budget, usage, rounds)

    def no_more(self) -> Failure | None:
        """Why no model can be asked any more: a call was refused, or the rounds are used up."""
        return self.refused or rounds_used_up(self.budget)

    def turn(self) -> None:
        """Count a call of a model. Raises DaikuError where the tree of runs has used up its rounds."""
        if (failure := rounds_used_up(self.budget)) is not None:
            self.refused = failure
            raise DaikuError(failure)
        self.budget = self.budget._replace(rounds=self.budget.rounds + 1)


Counting: TypeAlias = Callable[[ModelRequest], AbstractAsyncContextManager[Callable[[ModelEvent], None]]]
"""Counts a request while it is under way; what it gives hears each piece. Raises DaikuError of kind limit."""


def _ignored(_piece: ModelEvent) -> None:
    pass


def uncounted(_request: ModelRequest) -> AbstractAsyncContextManager[Callable[[ModelEvent], None]]:
    """What counts nothing."""
    return nullcontext(_ignored)


@dataclass(slots=True)
class Metered:
    """A model behind a budget: calls are reserved, then `counted`. `tell` hears once that a price is unknown."""

    model: Model
    shared: RunBudget
    tell: Callable[[Text], None]
    counted: Counting = uncounted
    _told: bool = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The model's pieces. Raises DaikuError of kind limit before anything is asked."""
        budget = self.shared.budget
        quote = self.model.quote(request) if budget.bounded else NOTHING_KNOWN
        if budget.limits.max_cost and quote.prompt_cost is None and not self._told:
            self._told = True
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
                finally:  # also where who listens has gone: its connection is let go of here
                    if isinstance(pieces, AsyncGenerator):
                        await pieces.aclose()
