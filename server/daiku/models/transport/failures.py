"""Conversion of vendor error responses and broken streams to LLMErrors with hints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from daiku.dataclass import replace
from daiku.domain.errors import (
    ContextOverflowError,
    Failure,
    FailureKind,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    ModelLoadingError,
    StreamCutError,
)
from daiku.models.transport.service import Service
from daiku.models.transport.vendor_errors import (
    STATUS_OF_CODE,
    VendorError,
    is_loading,
    is_overflow,
    read_error,
)
from daiku.texts.rules.retryafter import parse_retry_after
from daiku.texts.text import Text, joined, text

_ENDS = (".", "!", "?", "…", "。", "！", "？")

_QUOTA_CODES = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit_balance_too_low",
}
_NO_CREDIT = re.compile(
    r"credit balance is too low|insufficient (?:balance|credits?|quota)|billing", re.IGNORECASE
)
_BAD_KEY = re.compile(
    r"(?:incorrect|invalid|malformed) api[ _-]?key|api[ _-]?key (?:is )?(?:incorrect|invalid|not valid|not found)",
    re.IGNORECASE,
)
_BAD_KEY_CODES = {"invalid_api_key", "API_KEY_INVALID", "authentication_error", "UNAUTHENTICATED"}


def from_status(
    service: Service, status: int, body: bytes | str | JsonValue, headers: Mapping[str, str] | None = None
) -> LLMError:
    """Return the error for an HTTP response with `status` 300 or above. Header names are in lower case."""
    document: JsonValue = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    plain = document.strip() if isinstance(document, str) else ""
    if plain.startswith("<"):  # an HTML page from a proxy does not help the user
        document = ""
    elif plain:
        document = plain
    error = read_error(document)
    return _translate(service, status, error, parse_retry_after(headers or {}, datetime.now(UTC)))


def from_body(service: Service, document: JsonValue) -> LLMError:
    """Return the error that a stream or a 200 body contains."""
    error = read_error(document)
    known_statuses = [STATUS_OF_CODE[code] for code in error.codes if code in STATUS_OF_CODE]
    if not (error.status or known_statuses or error.message):
        return unreadable_error(service, json.dumps(document, ensure_ascii=False))
    return _translate(service, error.status or (known_statuses[-1] if known_statuses else 500), error, None)


def silence_error(service: Service, seconds: float = 0) -> LLMTimeoutError:
    """Build the error for a service that sent nothing for `seconds`."""
    message = (
        text("llm.silent_for", service=service.label, seconds=f"{seconds:g}")
        if seconds
        else text("llm.silent", service=service.label)
    )
    return temporary_error("timeout", message, text("llm.more_seconds", name=service.name))


def cancelled_error(service: Service) -> LLMTimeoutError:
    """Build the error for a service that cancelled its own reply without giving a reason."""
    return _server_error(service, 500, text("llm.cancelled"))


def stream_cut_error(service: Service) -> StreamCutError:
    """Build the error for a stream that ended before its closing event."""
    return StreamCutError(
        Failure(
            kind="stream_cut",
            message=text("llm.broke_off", service=service.label),
            hint=text("llm.no_call_run"),
            retryable=True,
        )
    )


def empty_response_error(service: Service) -> StreamCutError:
    """Build the error for an empty response."""
    return StreamCutError(
        Failure(
            kind="stream_cut",
            message=text("llm.empty", service=service.label),
            hint=text("llm.again_or_address", name=service.name),
            retryable=True,
        )
    )


def web_page_error(service: Service) -> LLMRequestError:
    """Build the error for a web page in place of an API response."""
    message = (
        text("llm.web_page_at", service=service.label, address=service.place)
        if service.place
        else text("llm.web_page", service=service.label)
    )
    hint = text("llm.address_or_proxy", name=service.name)
    return LLMRequestError(Failure(kind="not_found", message=message, hint=hint))


def unreadable_error(service: Service, what: str) -> StreamCutError:
    """Build the error for a response outside the protocol; `what` is its beginning."""
    return StreamCutError(
        Failure(
            kind="format",
            message=text("llm.unreadable", service=service.label, what=service.clean(what)[:200]),
            hint=text("llm.check_address", name=service.name),
            retryable=True,
        )
    )


def temporary_error(kind: FailureKind, message: Text, hint: Text, status: int = 0) -> LLMTimeoutError:
    """Build an error for a temporary failure that may be retried."""
    return LLMTimeoutError(Failure(kind=kind, message=message, hint=hint, retryable=True), status=status)


def _translate(service: Service, status: int, error: VendorError, wait: float | None) -> LLMError:
    """Return the typed error for a status and a vendor error."""
    vendor_message = service.clean(error.message)
    suffix = _quote_vendor(vendor_message)
    codes = set(error.codes)
    if wait is None:
        wait = error.retry_after
    elif status == 429:  # Retry-After shows that it is a rate limit
        error = replace(error, rate=True)
    if is_overflow(status, error):
        failure = Failure(
            kind="context_overflow",
            message=text("llm.too_long", service=service.label, more=suffix),
            hint=text("llm.new_conversation"),
        )
        return ContextOverflowError(
            failure, status=status, said=vendor_message, codes=error.codes, param=error.param
        )
    if (
        status in (401, 402, 403)
        or codes & _BAD_KEY_CODES
        or codes & _QUOTA_CODES
        or (status == 400 and _BAD_KEY.search(error.message))
        or _is_out_of_credit(status, error)
    ):
        return _auth_error(service, status, error, suffix)
    if is_loading(status, error.message):
        failure = Failure(
            kind="overloaded",
            message=text("llm.loading", service=service.label),
            hint=text("llm.await_loading"),
            retryable=True,
        )
        return ModelLoadingError(failure, status=status, retry_after=wait)
    if status == 429 or status in (503, 529) or "overloaded_error" in codes:
        is_overloaded = status != 429
        failure = Failure(
            kind="overloaded" if is_overloaded else "rate_limit",
            message=text(
                "llm.overloaded" if is_overloaded else "llm.limiting", service=service.label, more=suffix
            ),
            hint=text("llm.wait_or_fallback"),
            retryable=True,
        )
        return LLMRateLimitError(failure, status=status, retry_after=wait)
    if status in (408, 409, 425) or status >= 500:
        server_error = _server_error(service, status, suffix)
        server_error.retry_after, server_error.said = wait, vendor_message
        return server_error
    return _request_error(service, status, error, vendor_message, suffix)


def _quote_vendor(vendor_message: str) -> Text:
    """Return the vendor's message as the end of a sentence; only the end if it is empty."""
    if not vendor_message:
        return text("llm.end")
    return text("llm.said" if vendor_message.endswith(_ENDS) else "llm.said_end", words=vendor_message)


def _server_error(service: Service, status: int, suffix: Text) -> LLMTimeoutError:
    """Build the error for a failure inside the service."""
    message = text("llm.failed", service=service.label, status=status, more=suffix)
    return temporary_error("timeout", message, text("llm.again_or_status"), status)


def _is_out_of_credit(status: int, error: VendorError) -> bool:
    """Return True if the account has no credit. A rate limit does not count, whatever its message says."""
    if status == 402 or not _QUOTA_CODES.isdisjoint(error.codes):
        return True
    return status in (400, 429) and not error.rate and _NO_CREDIT.search(error.message) is not None


def _auth_error(service: Service, status: int, error: VendorError, suffix: Text) -> LLMError:
    """Build the error for a missing or wrong key, missing credit, or missing permission."""
    if _is_out_of_credit(status, error) or (status in (401, 403) and _NO_CREDIT.search(error.message)):
        message = text("llm.no_credit", service=service.label, more=suffix)
        hint = text("llm.add_credit")
    elif status == 403:
        message = text("llm.not_allowed", service=service.label, more=suffix)
        hint = joined("sentences", [text("llm.key_may_lack"), service.key_hint])
    else:
        message = text("llm.key_refused", service=service.label, more=suffix)
        hint = service.key_hint
    return LLMAuthError(Failure(kind="auth", message=message, hint=hint), status=status)


def _request_error(
    service: Service, status: int, error: VendorError, vendor_message: str, suffix: Text
) -> LLMError:
    """Build the error for a bad request: a wrong address, model, or argument."""
    codes = set(error.codes)
    kind: FailureKind = "bad_request"
    message = text("llm.rejected", service=service.label, status=status, more=suffix)
    hint = text("llm.ask_otherwise")
    is_missing = not codes.isdisjoint({"model_not_found", "not_found_error", "NOT_FOUND"})
    if status == 404 or is_missing:
        kind = "not_found"
        message = text("llm.not_there", service=service.label, more=suffix)
        hint = text("llm.see_models", name=service.name)
    elif 300 <= status < 400:
        hint = text("llm.moved", name=service.name)
    elif not vendor_message:
        hint = text("llm.check_model_and_address", name=service.name)
    elif not codes.isdisjoint({"content_policy_violation", "content_filter"}):
        kind = "content_filter"
        hint = text("llm.filtered")
    failure = Failure(kind=kind, message=message, hint=hint)
    return LLMRequestError(failure, status=status, said=vendor_message, codes=error.codes, param=error.param)
