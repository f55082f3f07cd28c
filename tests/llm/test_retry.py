from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.errors import (
    ContextOverflowError,
    Failure,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
)
from daiku.models.retries.policy import RetryPolicy, compute_retry_delay, is_transient
from daiku.texts.text import Text
from tests.cases import for_each

POLICY = RetryPolicy()


def limited(retry_after: float | None = None, *, retryable: bool = True) -> LLMRateLimitError:
    failure = Failure(kind="rate_limit", message=Text("slow down"), retryable=retryable)
    return LLMRateLimitError(failure, status=429, retry_after=retry_after)


@for_each(
    ("error", "expected"),
    [
        (LLMTimeoutError(Failure(kind="timeout", message=Text(""), retryable=True), status=408), True),
        (LLMTimeoutError(Failure(kind="overloaded", message=Text(""), retryable=True), status=502), True),
        (limited(), True),
        (StreamCutError(Failure(kind="stream_cut", message=Text(""), retryable=True)), True),
        (limited(retryable=False), False),  # a quota that is used up
        (LLMRequestError(Failure(kind="bad_request", message=Text("")), status=400), False),
        (LLMAuthError(Failure(kind="auth", message=Text("")), status=401), False),
        (LLMRequestError(Failure(kind="not_found", message=Text("")), status=404), False),
        (ContextOverflowError(Failure(kind="context_overflow", message=Text(""), retryable=True)), False),
    ],
)
def test_only_what_may_go_better_next_time_is_tried_again(error: LLMError, expected: bool) -> None:
    assert is_transient(error) is expected
    assert (compute_retry_delay(1, error, POLICY, 0.5) is not None) is expected


def test_three_further_tries_and_no_fourth() -> None:
    waits = [compute_retry_delay(attempt, limited(), POLICY, 0.0) for attempt in (1, 2, 3, 4)]
    assert waits == [0.5, 1.0, 2.0, None]


def test_the_services_retry_after_is_a_lower_bound() -> None:
    assert compute_retry_delay(1, limited(12.0), POLICY, 0.0) == 12.0
    assert compute_retry_delay(3, limited(0.1), POLICY, 0.0) == 2.0


def test_a_service_that_wants_hours_is_given_up_at_once() -> None:
    assert compute_retry_delay(1, limited(3600.0), POLICY, 0.0) is None


@given(st.integers(1, 3), st.floats(0, 1, exclude_max=True), st.floats(0, 120))
def test_waits_are_bounded_and_never_shorter_than_asked(attempt: int, chance: float, asked: float) -> None:
    wait = compute_retry_delay(attempt, limited(asked), POLICY, chance)
    assert wait is not None
    assert asked <= wait <= max(asked, POLICY.longest_delay)
