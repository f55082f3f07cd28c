"""Budget shared by a run and its nested runs; each model call reserves its maximum first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from daiku.domain.errors import Failure
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits
from daiku.texts.text import Text, text

LEAST_OUTPUT = 256
"""Output tokens below which a call is refused."""


class Quote(NamedTuple):
    """Upper bound of a call: tokens in and out, USD for the prompt and per output token (None: unknown)."""

    prompt: int
    output: int
    prompt_cost: float | None = None
    output_price: float | None = None


class Hold(NamedTuple):
    """Reservation for one call. `max_output`: output limit in tokens (0: the model's own)."""

    tokens: int
    cost: float
    max_output: int = 0


class Budget(NamedTuple):
    """Limits of a tree of runs, its usage, and its reservations."""

    limits: RunLimits
    tokens: int = 0
    cost: float = 0.0
    rounds: int = 0
    held: tuple[Hold, ...] = ()

    @property
    def is_limited(self) -> bool:
        """True if tokens or cost are limited, so that calls must be reserved."""
        return self.limits.max_tokens > 0 or self.limits.max_cost > 0


def open_budget(limits: RunLimits, usage: Usage, rounds: int) -> Budget:
    """Return the budget of a run that already used `usage` and `rounds`."""
    return Budget(limits, usage.prompt_tokens + usage.completion_tokens, usage.cost or 0.0, rounds)


def worst_quote(quotes: Iterable[Quote]) -> Quote:
    """Return the maximum quote of the models that may answer a call (fallbacks have their own prices)."""
    every = list(quotes)
    return Quote(
        prompt=max(q.prompt for q in every),
        output=max(q.output for q in every),
        prompt_cost=max((q.prompt_cost for q in every if q.prompt_cost is not None), default=None),
        output_price=max((q.output_price for q in every if q.output_price is not None), default=None),
    )


ENOUGH = 4096
"""Output tokens that a call should get if waiting for another call can free them."""


def should_wait(budget: Budget, quote: Quote) -> bool:
    """Return True if the call should wait for running ones, which may leave room for a useful answer."""
    if not budget.held:
        return False
    reserved = reserve(budget, quote)
    if isinstance(reserved, Failure):
        return not isinstance(reserve(budget._replace(held=()), quote), Failure)
    output = reserved[1].max_output or quote.output
    return output < min(ENOUGH, quote.output)


def reserve(budget: Budget, quote: Quote) -> tuple[Budget, Hold] | Failure:
    """Reserve the call with its output limited to the remainder; a Failure if not even a short answer fits."""
    limits = budget.limits
    output = quote.output
    if limits.max_tokens:
        remaining = limits.max_tokens - budget.tokens - sum(h.tokens for h in budget.held)
        output = min(output, remaining - quote.prompt)
        if output < min(LEAST_OUTPUT, quote.output):
            detail = text("limits.left", left=max(remaining, 0), most=limits.max_tokens, needed=quote.prompt)
            return _limit_failure(text("limits.tokens"), detail, "max_tokens")
    if limits.max_cost and quote.prompt_cost is not None:
        remaining_cost = limits.max_cost - budget.cost - sum(h.cost for h in budget.held)
        output_budget = remaining_cost - quote.prompt_cost
        if quote.output_price:
            output = int(min(output, output_budget / quote.output_price)) if output_budget > 0 else -1
        elif output_budget < 0:
            output = -1
        if output < min(LEAST_OUTPUT, quote.output):
            dollars = {"left": max(remaining_cost, 0.0), "most": limits.max_cost, "needed": quote.prompt_cost}
            detail = text("limits.left", **{name: f"${value:.4f}" for name, value in dollars.items()})
            return _limit_failure(text("limits.cost"), detail, "max_cost")
    hold = Hold(
        tokens=quote.prompt + output,
        cost=(quote.prompt_cost or 0.0) + output * (quote.output_price or 0.0),
        max_output=output if output < quote.output else 0,
    )
    return budget._replace(held=(*budget.held, hold)), hold


def rounds_used_up(budget: Budget) -> Failure | None:
    """Return the failure if the tree of runs has used all its rounds, else None."""
    if not 0 < budget.limits.max_rounds <= budget.rounds:
        return None
    return _limit_failure(text("limits.rounds"), text("limits.used", count=budget.rounds), "max_rounds")


def settle(budget: Budget, hold: Hold, usage: Usage | None) -> Budget:
    """Release the reservation `hold` and charge the call's `usage`; charge nothing if it is unknown."""
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
    """Return the budget with usage and rounds from before it was opened."""
    return budget._replace(
        tokens=budget.tokens + usage.prompt_tokens + usage.completion_tokens,
        cost=budget.cost + (usage.cost or 0.0),
        rounds=budget.rounds + rounds,
    )


def _limit_failure(limit: Text, what: Text, setting: str) -> Failure:
    return Failure(
        kind="limit",
        message=text("limits.no_room", limit=limit, what=what),
        hint=text("limits.raise", setting=setting),
    )
