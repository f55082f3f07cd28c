"""When a failed model call is made again, and after how long; pure, so that tests need no clock."""

from __future__ import annotations

from dataclasses import dataclass

from daiku.domain.errors import LLMError, LLMRateLimitError, LLMTimeoutError, StreamCutError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`tries` further tries after the first; waits in seconds, doubling from `first` up to `longest`."""

    tries: int = 3
    first: float = 1.0
    longest: float = 30.0
    patience: float = 120.0
    """A service that asks for a longer wait than this is given up at once."""


def again(error: LLMError) -> bool:
    """True for 408, 429, 5xx, time-outs, lost connections and cut streams; never for what would fail
    the same way again (400, 401, 403, 404, an overflow, a quota that is used up)."""
    return isinstance(error, LLMTimeoutError | LLMRateLimitError | StreamCutError) and error.failure.retryable


def wait_before(attempt: int, error: LLMError, policy: RetryPolicy, chance: float) -> float | None:
    """Seconds before try number `attempt` (1 is the first further try), or None: do not try again.

    The service's Retry-After is a lower bound. `chance` in [0, 1) spreads the tries of many clients
    over the upper half of the wait.
    """
    if attempt > policy.tries or not again(error):
        return None
    asked = error.retry_after or 0.0
    if asked > policy.patience:
        return None
    backoff = min(policy.longest, policy.first * 2.0 ** (attempt - 1))
    return max(asked, backoff * (0.5 + chance / 2))
