"""One budget for a run and its children: what a call may come to is reserved before it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from daiku.domain.errors import Failure
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits
from daiku.texts.text import Text, text

LEAST_OUTPUT = 256
"""Tokens of output below which a call is not worth making."""


class Quote(NamedTuple):
    """Upper bound of a call: tokens in and out, USD for the prompt and per output token (None: unknown)."""

    prompt: int
    output: int
    prompt_cost: float | None = None
    output_price: float | None = None


class Hold(NamedTuple):
    """A reservation for one call. `max_output`: output limit to ask for, 0 if the model's own fits."""

    tokens: int
    cost: float
    max_output: int = 0


class Budget(NamedTuple):
    """The limits of a tree of runs, what it spent, and what is set aside for calls under way."""

    limits: RunLimits
    tokens: int = 0
    cost: float = 0.0
    rounds: int = 0
    held: tuple[Hold, ...] = ()

    @property
    def bounded(self) -> bool:
        """True where tokens or cost are limited, so that calls have to be reserved."""
        return self.limits.max_tokens > 0 or self.limits.max_cost > 0


def open_budget(limits: RunLimits, usage: Usage, rounds: int) -> Budget:
    """The budget of a run that already used `usage` and `rounds`."""
    return Budget(limits, usage.prompt_tokens + usage.completion_tokens, usage.cost or 0.0, rounds)


def worst_quote(quotes: Iterable[Quote]) -> Quote:
    """The worst of several models that may answer the same call (a fallback has its own price)."""
    every = list(quotes)
    return Quote(
        prompt=max(q.prompt for q in every),
        output=max(q.output for q in every),
        prompt_cost=max((q.prompt_cost for q in every if q.prompt_cost is not None), default=None),
        output_price=max((q.output_price for q in every if q.output_price is not None), default=None),
    )


ENOUGH = 4096
"""Tokens of output that a call is given at least, where waiting for another call may leave more for it."""


def may_wait(budget: Budget, quote: Quote) -> bool:
    """Return True if the call should wait for running ones, which may leave room for a useful answer."""
    if not budget.held:
        return False
    now = reserve(budget, quote)
    if isinstance(now, Failure):
        return not isinstance(reserve(budget._replace(held=()), quote), Failure)
    output = now[1].max_output or quote.output
    return output < min(ENOUGH, quote.output)


def reserve(budget: Budget, quote: Quote) -> tuple[Budget, Hold] | Failure:
    """Reserve the call, its output limited to what is left. A Failure if not even a short answer fits."""
    limits = budget.limits
    output = quote.output
    if limits.max_tokens:
        left = limits.max_tokens - budget.tokens - sum(h.tokens for h in budget.held)
        output = min(output, left - quote.prompt)
        if output < min(LEAST_OUTPUT, quote.output):
            what = text("limits.left", left=max(left, 0), most=limits.max_tokens, needed=quote.prompt)
            return _short(text("limits.tokens"), what, "max_tokens")
    if limits.max_cost and quote.prompt_cost is not None:
        free = limits.max_cost - budget.cost - sum(h.cost for h in budget.held)
        room = free - quote.prompt_cost
        if quote.output_price:
            output = int(min(output, room / quote.output_price)) if room > 0 else -1
        elif room < 0:
            output = -1
        if output < min(LEAST_OUTPUT, quote.output):
            dollars = {"left": max(free, 0.0), "most": limits.max_cost, "needed": quote.prompt_cost}
            what = text("limits.left", **{name: f"${value:.4f}" for name, value in dollars.items()})
            return _short(text("limits.cost"), what, "max_cost")
    hold = Hold(
        tokens=quote.prompt + output,
        cost=(quote.prompt_cost or 0.0) + output * (quote.output_price or 0.0),
        max_output=output if output < quote.output else 0,
    )
    return budget._replace(held=(*budget.held, hold)), hold


def rounds_used_up(budget: Budget) -> Failure | None:
    """Why no further turn may be taken in the whole tree of runs."""
    if not 0 < budget.limits.max_rounds <= budget.rounds:
        return None
    return _short(text("limits.rounds"), text("limits.used", count=budget.rounds), "max_rounds")


def settle(budget: Budget, hold: Hold, usage: Usage | None) -> Budget:
    """Release the reservation `hold` and charge the call's `usage`; nothing if it is unknown."""
    held = list(budget.held)
    held.remove(hold)
    if usage is None:
        return budget._replace(held=tuple(held))
    return budget._replace(
        held=tuple(held),
        tokens=budget.tokens + usage.prompt_tokens + usage.completion_tokens,
        cost=budget.cost + (usage.cost or 0.0),
    )


def add_earlier_use(budget: Budget, usage: Usage, rounds: int) -> Budget:
    """Return the budget with further usage and rounds from before it was opened added."""
    return budget._replace(
        tokens=budget.tokens + usage.prompt_tokens + usage.completion_tokens,
        cost=budget.cost + (usage.cost or 0.0),
        rounds=budget.rounds + rounds,
    )


def _short(limit: Text, what: Text, setting: str) -> Failure:
    return Failure(
        kind="limit",
        message=text("limits.no_room", limit=limit, what=what),
        hint=text("limits.raise", setting=setting),
    )
