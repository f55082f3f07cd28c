"""When a failed call is made again unchanged, and how long to wait before it."""

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
    """How often a call is retried, and the delays in seconds: doubled from the first one up to the longest."""

    retries: int = 3
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_retry_after: float = 120.0
    """A service that asks for a longer wait than this is given up at once."""
    loading_retries: int = 24
    """Retries while a server loads its model: about 5 minutes with waits of at most `longest_loading_delay`."""
    longest_loading_delay: float = 15.0
    unreadable: int = 1
    strict: bool = False
    """How often a reply is asked for again that does not hold to its text protocol; `strict`: words alone do not."""

    def count_retries(self, error: LLMError) -> int:
        """Return the maximum number of retries after `error`."""
        return self.loading_retries if isinstance(error, ModelLoadingError) else self.retries

    def describe_retry(self, error: LLMError, attempt: int) -> Text:
        """Return the notice of retry number `attempt`. A failed connection is described after the last retry only."""
        most = self.count_retries(error)
        if error.failure.kind == "connection":
            return text("llm.connecting_again", attempt=attempt, most=most)
        return text("llm.trying_again", message=error.failure.message, attempt=attempt, most=most)


def is_transient(error: LLMError) -> bool:
    """Return True for 408, 429, 5xx, time-outs, lost connections and cut streams; never for what would fail
    the same way again (400, 401, 403, 404, an overflow, a quota that is used up)."""
    temporary = LLMTimeoutError | LLMRateLimitError | StreamCutError | ModelLoadingError
    return isinstance(error, temporary) and error.failure.retryable


def retry_delay(attempt: int, error: LLMError, policy: RetryPolicy, chance: float) -> float | None:
    """Return the seconds before retry number `attempt`, counted from 1, or None: do not retry.

    The service's Retry-After is a lower bound. `chance` in [0, 1) spreads the tries of many clients
    over the upper half of the wait.
    """
    if attempt > policy.count_retries(error) or not is_transient(error):
        return None
    if (asked := error.retry_after or 0.0) > policy.longest_retry_after:
        return None
    longest = policy.longest_loading_delay if isinstance(error, ModelLoadingError) else policy.longest_delay
    backoff = min(longest, policy.first_delay * 2.0 ** (attempt - 1))
    return max(asked, backoff * (0.5 + chance / 2))
