"""Retry policy for failed model requests: which errors are retried, and with what backoff."""

from __future__ import annotations

from daiku.dataclass import dataclass
from daiku.domain.errors import (
    LLMError,
    LLMRateLimitError,
    LLMTimeoutError,
    ModelLoadingError,
    StreamCutError,
)
from daiku.texts.text import Text, text


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retry limits, and delays in seconds. The delay doubles from `first_delay` up to `longest_delay`."""

    retries: int = 3
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_retry_after: float = 120.0
    """Seconds. A service that asks for a longer wait is not retried."""
    loading_retries: int = 24
    """Retries while a server loads its model: about 5 minutes with waits of at most `longest_loading_delay`."""
    longest_loading_delay: float = 15.0
    format_retries: int = 1
    """Maximum retries for a reply that violates its text protocol."""
    strict: bool = False
    """True if text without a call violates a text protocol."""

    def count_retries(self, error: LLMError) -> int:
        """Return the maximum number of retries after `error`."""
        return self.loading_retries if isinstance(error, ModelLoadingError) else self.retries

    def describe_retry(self, error: LLMError, attempt: int) -> Text:
        """Return the notice of retry number `attempt`. A connection failure is described after the last retry only."""
        limit = self.count_retries(error)
        if error.failure.kind == "connection":
            return text("llm.connecting_again", attempt=attempt, most=limit)
        return text("llm.trying_again", message=error.failure.message, attempt=attempt, most=limit)


def is_transient(error: LLMError) -> bool:
    """Return True for 408, 429, 5xx, timeouts, lost connections, and cut streams.

    False for permanent failures: 400, 401, 403, 404, context overflow, an exhausted quota.
    """
    temporary = LLMTimeoutError | LLMRateLimitError | StreamCutError | ModelLoadingError
    return isinstance(error, temporary) and error.failure.retryable


def compute_retry_delay(attempt: int, error: LLMError, policy: RetryPolicy, chance: float) -> float | None:
    """Return the seconds before retry number `attempt`, counted from 1; None to stop retrying.

    The service's Retry-After is a lower bound. `chance` in [0, 1) adds jitter over the upper half of the delay.
    """
    if attempt > policy.count_retries(error) or not is_transient(error):
        return None
    if (requested := error.retry_after or 0.0) > policy.longest_retry_after:
        return None
    longest = policy.longest_loading_delay if isinstance(error, ModelLoadingError) else policy.longest_delay
    backoff = min(longest, policy.first_delay * 2.0 ** (attempt - 1))
    return max(requested, backoff * (0.5 + chance / 2))
