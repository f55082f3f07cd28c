"""Vendors' error answers and broken streams as LLMErrors, each with what to do about it."""

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
from daiku.texts.rules.retryafter import retry_after
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
    """The error of an HTTP answer with `status` 300 and above; `headers` with lower-case names."""
    document: JsonValue = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    plain = document.strip() if isinstance(document, str) else ""
    if plain.startswith("<"):  # a proxy's HTML page says nothing to a person
        document = ""
    elif plain:
        document = plain
    error = read_error(document)
    return _translate(service, status, error, retry_after(headers or {}, datetime.now(UTC)))


def from_body(service: Service, document: JsonValue) -> LLMError:
    """The error that a stream or a 200 body carries."""
    error = read_error(document)
    named = [STATUS_OF_CODE[code] for code in error.codes if code in STATUS_OF_CODE]
    if not (error.status or named or error.message):
        return unreadable_error(service, json.dumps(document, ensure_ascii=False))
    return _translate(service, error.status or (named[-1] if named else 500), error, None)


def silence_error(service: Service, seconds: float = 0) -> LLMTimeoutError:
    """Build the error for a service that sent nothing for too long."""
    message = (
        text("llm.silent_for", service=service.label, seconds=f"{seconds:g}")
        if seconds
        else text("llm.silent", service=service.label)
    )
    return temporary_error("timeout", message, text("llm.more_seconds", name=service.name))


def cancelled(service: Service) -> LLMTimeoutError:
    """Build the error for a service that cancelled its own reply without giving a reason."""
    return _failed(service, 500, text("llm.cancelled"))


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
    """The typed error for a status and what the vendor said."""
    said = service.clean(error.message)
    more = _in_its_words(said)
    codes = set(error.codes)
    if wait is None:
        wait = error.retry_after
    elif status == 429:  # it says when to come again
        error = replace(error, rate=True)
    if is_overflow(status, error):
        failure = Failure(
            kind="context_overflow",
            message=text("llm.too_long", service=service.label, more=more),
            hint=text("llm.new_conversation"),
        )
        return ContextOverflowError(failure, status=status, said=said, codes=error.codes, param=error.param)
    if (
        status in (401, 402, 403)
        or codes & _BAD_KEY_CODES
        or codes & _QUOTA_CODES
        or (status == 400 and _BAD_KEY.search(error.message))
        or _out_of_credit(status, error)
    ):
        return _refused(service, status, error, more)
    if is_loading(status, error.message):
        failure = Failure(
            kind="overloaded",
            message=text("llm.loading", service=service.label),
            hint=text("llm.await_loading"),
            retryable=True,
        )
        return ModelLoadingError(failure, status=status, retry_after=wait)
    if status == 429 or status in (503, 529) or "overloaded_error" in codes:
        busy = status != 429
        failure = Failure(
            kind="overloaded" if busy else "rate_limit",
            message=text("llm.overloaded" if busy else "llm.limiting", service=service.label, more=more),
            hint=text("llm.wait_or_fallback"),
            retryable=True,
        )
        return LLMRateLimitError(failure, status=status, retry_after=wait)
    if status in (408, 409, 425) or status >= 500:
        failed = _failed(service, status, more)
        failed.retry_after, failed.said = wait, said
        return failed
    return _rejected(service, status, error, said, more)


def _in_its_words(said: str) -> Text:
    """What the service said, as the end of a sentence of ours; only that end where it said nothing."""
    if not said:
        return text("llm.end")
    return text("llm.said" if said.endswith(_ENDS) else "llm.said_end", words=said)


def _failed(service: Service, status: int, more: Text) -> LLMTimeoutError:
    """Something went wrong inside the service."""
    message = text("llm.failed", service=service.label, status=status, more=more)
    return temporary_error("timeout", message, text("llm.again_or_status"), status)


def _out_of_credit(status: int, error: VendorError) -> bool:
    """Whether nothing is left to pay with. A limit per time is none, whatever else its text speaks of."""
    if status == 402 or not _QUOTA_CODES.isdisjoint(error.codes):
        return True
    return status in (400, 429) and not error.rate and _NO_CREDIT.search(error.message) is not None


def _refused(service: Service, status: int, error: VendorError, more: Text) -> LLMError:
    """No key, a wrong one, one without credit, or one that may not do this."""
    if _out_of_credit(status, error) or (status in (401, 403) and _NO_CREDIT.search(error.message)):
        message = text("llm.no_credit", service=service.label, more=more)
        hint = text("llm.add_credit")
    elif status == 403:
        message = text("llm.not_allowed", service=service.label, more=more)
        hint = joined("sentences", [text("llm.key_may_lack"), service.key_hint])
    else:
        message = text("llm.key_refused", service=service.label, more=more)
        hint = service.key_hint
    return LLMAuthError(Failure(kind="auth", message=message, hint=hint), status=status)


def _rejected(service: Service, status: int, error: VendorError, said: str, more: Text) -> LLMError:
    """The request itself is wrong: the address, the model, an argument."""
    codes = set(error.codes)
    kind: FailureKind = "bad_request"
    message = text("llm.rejected", service=service.label, status=status, more=more)
    hint = text("llm.ask_otherwise")
    missing = not codes.isdisjoint({"model_not_found", "not_found_error", "NOT_FOUND"})
    if status == 404 or missing:
        kind = "not_found"
        message = text("llm.not_there", service=service.label, more=more)
        hint = text("llm.see_models", name=service.name)
    elif 300 <= status < 400:
        hint = text("llm.moved", name=service.name)
    elif not said:
        hint = text("llm.check_model_and_address", name=service.name)
    elif not codes.isdisjoint({"content_policy_violation", "content_filter"}):
        kind = "content_filter"
        hint = text("llm.filtered")
    failure = Failure(kind=kind, message=message, hint=hint)
    return LLMRequestError(failure, status=status, said=said, codes=error.codes, param=error.param)
