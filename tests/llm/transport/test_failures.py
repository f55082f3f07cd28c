"""What any service says about a failure becomes one error that says what, why and what to do."""

from __future__ import annotations

import errno
import socket
import ssl

import httpx2
import pytest
from pydantic import JsonValue

from daiku.domain.errors import (
    ContextOverflowError,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
)
from daiku.models.transport.client_errors import from_exception
from daiku.models.transport.failures import from_body, from_status
from daiku.models.transport.service import Service
from daiku.texts.text import render
from tests.cases import for_each

SERVICE = Service(name="x", label="X", address="http://x/v1", key_env="X_API_KEY", secrets=("hush-hush",))

OVERFLOWS = [
    (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000."),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "prompt is too long: 208310 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
    (400, "The input token count (1250025) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (
        400,
        "Prompt contains 300000 tokens and 0 draft tokens, too large for model with 131072 maximum context",
    ),
    (400, "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)"),
    (400, "the request exceeds the available context size. try increasing the context size"),
    (400, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193."),
    (400, "prompt token count of 130000 exceeds the limit of 128000"),
    (400, "Range of input length should be [1, 129024]"),
    (400, "Input is too long for requested model."),
    (400, "invalid params, context window exceeds limit"),
    (500, "Context size has been exceeded."),
    (400, "Trying to keep the first 9000 tokens when context the overflows."),
    (413, ""),
    (429, "Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 50000."),
]


@for_each(("status", "message"), OVERFLOWS)
def test_an_overflow_is_seen_for_every_vendor(status: int, message: str) -> None:
    error = from_status(SERVICE, status, {"error": {"message": message}})
    assert isinstance(error, ContextOverflowError)
    assert not error.failure.retryable


@for_each(
    ("status", "message", "expected"),
    [
        (
            429,
            "Rate limit reached for tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
            LLMRateLimitError,
        ),
        (
            429,
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
            LLMRateLimitError,
        ),
        (400, "temperature is too high", LLMRequestError),
        (
            400,
            "Unsupported value: max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
            LLMRequestError,
        ),
        (401, "context length", LLMAuthError),
        (400, "Your credit balance is too low to access the API.", LLMAuthError),
    ],
)
def test_what_only_sounds_like_an_overflow_is_none(
    status: int, message: str, expected: type[LLMError]
) -> None:
    assert type(from_status(SERVICE, status, {"error": {"message": message}})) is expected


@for_each(
    "document",
    [
        {"error": {"message": "boom"}},
        {"error": "boom"},
        {"detail": "boom"},
        {"detail": [{"loc": ["body"], "msg": "boom"}]},
        {"message": "boom"},
        {"errors": [{"message": "boom"}]},
        [{"error": {"message": "boom"}}],
        {"error": {"message": '{"error": {"message": "boom"}}'}},
        '{"error": "boom"}',
        "boom",
        b"boom",
    ],
)
def test_the_message_is_found_in_every_shape(document: object) -> None:
    error = from_status(SERVICE, 400, document)  # type: ignore[arg-type]  # JSON of many shapes
    assert error.failure.message == "X rejected the request (HTTP 400): boom."


@for_each(
    ("document", "status", "expected"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            529,
            LLMRateLimitError,
        ),
        ({"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}, 503, LLMRateLimitError),
        ({"error": {"message": "x", "code": "502"}}, 502, LLMTimeoutError),
        ({"error": "model runner has unexpectedly stopped"}, 500, LLMTimeoutError),
        ({"error": {"type": "authentication_error", "message": "x"}}, 401, LLMAuthError),
        ({"error": {"code": "model_not_found", "message": "x"}}, 404, LLMRequestError),
    ],
)
def test_an_error_in_a_body_has_the_status_that_its_name_means(
    document: object, status: int, expected: type[LLMError]
) -> None:
    error = from_body(SERVICE, document)  # type: ignore[arg-type]  # JSON of many shapes
    assert (type(error), error.status) == (expected, status)


GEMINI_PER_MINUTE: JsonValue = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute-PaidTier"}],
            },
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48s"},
        ],
    }
}
RATES: list[tuple[JsonValue, float | None]] = [
    (GEMINI_PER_MINUTE, 48.0),
    (
        {
            "error": {
                "message": "Rate limit reached for model `x` on tokens per minute (TPM): Limit 6000, Used 5000, Requested "
                "1900. Please try again in 9.1s. Need more tokens? Upgrade to Dev Tier today at https://x.test/billing",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        9.1,
    ),
    (
        {"error": {"message": "Limit 40000 / min. Add a payment method to your billing page to raise it.", "code": "rate_limit_exceeded"}},
        None,
    ),
    ({"error": {"message": "Requests per day limit reached; see billing."}}, None),
]  # fmt: skip
SPENT: list[tuple[int, JsonValue]] = [
    (429, {"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "code": "insufficient_quota"}}),
    (429, {"error": {"message": "Quota used up, see billing; try again in 3s", "type": "insufficient_quota"}}),
    (402, {"error": {"message": "Insufficient credits"}}),
    (400, {"error": {"message": "Your credit balance is too low"}}),
    (429, {"error": {"message": "Your account is not active, please check your billing details"}}),
]  # fmt: skip


@for_each(("document", "wait"), RATES)
def test_a_limit_per_time_is_waited_out_whatever_other_words_stand_in_it(
    document: JsonValue, wait: float | None
) -> None:
    error = from_status(SERVICE, 429, document)
    assert (type(error), error.retry_after, error.failure.retryable) == (LLMRateLimitError, wait, True)


@for_each(("status", "document"), SPENT)
def test_an_account_without_credit_is_not_asked_again(status: int, document: JsonValue) -> None:
    error = from_status(SERVICE, status, document)
    assert isinstance(error, LLMAuthError)
    assert "no credit left" in error.failure.message


@for_each("status", [503, 529])
def test_a_service_with_too_much_to_do_is_overloaded_whatever_else_it_says(status: int) -> None:
    error = from_status(SERVICE, status, "", {"retry-after": "7"})
    assert isinstance(error, LLMRateLimitError)
    assert (error.failure.kind, error.retry_after) == ("overloaded", 7.0)


def test_a_header_that_says_when_to_come_again_makes_it_a_rate() -> None:
    said: JsonValue = {"error": {"message": "See your billing page."}}
    assert isinstance(from_status(SERVICE, 429, said, {"retry-after": "7"}), LLMRateLimitError)
    assert isinstance(from_status(SERVICE, 429, said), LLMAuthError)


@for_each(
    "message",
    ["Incorrect API key provided: xa***. See the console.", "Invalid API key", "API key not valid."],
)
def test_a_wrong_key_is_one_also_where_the_service_calls_it_a_bad_request(message: str) -> None:
    error = from_status(SERVICE, 400, {"code": "invalid-argument", "error": message})
    assert isinstance(error, LLMAuthError)
    assert "X_API_KEY" in error.failure.hint


def test_a_gateway_shows_what_the_service_behind_it_said() -> None:
    for raw in ("slow down please", '{"error": {"message": "slow down please"}}'):
        body: JsonValue = {
            "error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": raw}}
        }
        error = from_status(SERVICE, 429, body)
        assert "slow down please" in error.failure.message
        assert "Provider returned error" not in error.failure.message


def test_google_says_how_long_to_wait_within_the_error() -> None:
    details: list[JsonValue] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]
    error = from_body(SERVICE, {"error": {"code": 429, "message": "Quota", "details": details}})
    assert error.retry_after == 34.4


@for_each(
    ("error", "kind"),
    [
        (httpx2.ConnectError("refused"), "connection"),
        (httpx2.ConnectTimeout(""), "connection"),
        (httpx2.ReadTimeout(""), "timeout"),
        (httpx2.ReadError(""), "connection"),
        (httpx2.RemoteProtocolError("peer closed connection"), "connection"),
        (httpx2.UnsupportedProtocol("no scheme"), "usage"),
        (RuntimeError("strange"), "internal"),
    ],
)
def test_an_exception_of_the_client_is_told_in_words(error: Exception, kind: str) -> None:
    told = from_exception(SERVICE, error)
    assert told.failure.kind == kind
    assert told.failure.message
    assert told.failure.retryable == (kind in ("connection", "timeout"))


def _because(reason: Exception | None, of: Exception) -> Exception:
    """As the client's libraries do it: each wraps what the one below it raised."""
    middle = OSError("Multiple exceptions: [Errno 111] Connect call failed ('127.0.0.1', 9)")
    middle.__context__ = reason
    of.__cause__ = middle
    return of


LIBRARY = "Cannot connect to host h:1 ssl:default [Connect call failed ('127.0.0.1', 1)] <TransferEncodingError: 400>"


@for_each(
    ("error", "words"),
    [
        (
            _because(ConnectionRefusedError(111, LIBRARY), httpx2.ConnectError(LIBRARY)),
            "nothing responds at this address",
        ),
        (_because(socket.gaierror(-2, LIBRARY), httpx2.ConnectError(LIBRARY)), "its name cannot be resolved"),
        (_because(ssl.SSLCertVerificationError(LIBRARY), httpx2.ConnectError(LIBRARY)), "certificate"),
        (_because(ssl.SSLError(LIBRARY), httpx2.ConnectError(LIBRARY)), "TLS"),
        (_because(OSError(errno.ENETUNREACH, LIBRARY), httpx2.ConnectError(LIBRARY)), "no network"),
        (_because(None, httpx2.ConnectTimeout(LIBRARY)), "no response"),
        (
            _because(ConnectionRefusedError(111, LIBRARY), httpx2.ConnectTimeout(LIBRARY)),
            "nothing responds at this address",
        ),
        (_because(None, httpx2.ConnectError(LIBRARY)), "the connection failed"),
        (httpx2.RemoteProtocolError(LIBRARY), "was lost."),
        (httpx2.ReadError(LIBRARY), "was lost."),
        (httpx2.UnsupportedProtocol(LIBRARY), "cannot be used."),
        (RuntimeError(LIBRARY), "unexpected"),
        (ValueError(LIBRARY), "unexpected"),
    ],
)
@for_each("locale", ["en", "ja"])
def test_no_words_of_a_library_reach_a_person(error: Exception, words: str, locale: str) -> None:
    failure = from_exception(SERVICE, error).failure
    told = f"{failure.message} {failure.hint}"
    assert words in told
    said = render(failure.message, locale)
    for word in ("Cannot connect", "ssl:default", "Errno", "Error:", "call failed", type(error).__name__):
        assert word not in f"{told} {said}"
    assert said != failure.message or locale == "en"


def test_an_sdk_wraps_what_happened_to_the_connection() -> None:
    wrapped = RuntimeError("Connection error.")
    wrapped.__cause__ = httpx2.ConnectError("refused")
    assert from_exception(SERVICE, wrapped).failure.kind == "connection"


def test_no_message_shows_a_key_or_a_page_or_a_book() -> None:
    told = from_status(SERVICE, 400, "hush-hush sk-aaaaaaaaaaaaaaaaaaaaaaaa " + "x" * 5000).failure.message
    assert "hush" not in told
    assert "sk-a" not in told
    assert len(told) < 800
    assert "hush" not in repr(SERVICE)
    assert from_status(SERVICE, 502, "<html>Bad gateway</html>").failure.message == "X failed (HTTP 502)."


def test_what_the_vendor_says_ends_as_a_sentence() -> None:
    said = from_status(SERVICE, 400, {"error": {"message": "no such thing"}}).failure.message
    assert said.endswith("no such thing.")
    said = from_status(SERVICE, 400, {"error": {"message": "だめです。"}}).failure.message
    assert said.endswith("だめです。")


def test_a_body_that_is_no_error_is_not_called_one_of_the_service() -> None:
    failure = from_body(SERVICE, {}).failure
    assert failure.kind == "format"
    assert "llm.x.base_url" in failure.hint


def test_a_key_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(UnicodeEncodeError) as raised:
        "sk-日本".encode("ascii")
    error = from_exception(SERVICE, raised.value)
    assert isinstance(error, LLMAuthError)
    assert "X_API_KEY" in error.failure.hint
    assert "日本" not in error.failure.message
