"""Vendors' error answers and broken streams as LLMErrors, each with what to do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pydantic import JsonValue

from daiku.domain.errors import (
    ContextOverflowError,
    Failure,
    FailureKind,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
)
from daiku.llm.transport.service import Service
from daiku.llm.transport.vendor_errors import STATUS_OF_CODE, VendorError, is_overflow, read_error

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
    text = document.strip() if isinstance(document, str) else ""
    if text.startswith("<"):  # a proxy's HTML page says nothing to a person
        document = ""
    elif text:
        document = text
    error = read_error(document)
    return _translate(service, status, error, retry_after(headers or {}))


def from_body(service: Service, document: JsonValue) -> LLMError:
    """The error that a stream or a 200 body carries."""
    error = read_error(document)
    named = [STATUS_OF_CODE[code] for code in error.codes if code in STATUS_OF_CODE]
    if not (error.status or named or error.message):
        return unreadable(service, json.dumps(document, ensure_ascii=False))
    return _translate(service, error.status or (named[-1] if named else 500), error, None)


def silent(service: Service, seconds: float = 0) -> LLMTimeoutError:
    """The service sent nothing for too long."""
    span = f" for {seconds:g} s" if seconds else " for too long"
    return lost(
        "timeout",
        f"{service.label} sent nothing{span}.",
        f"A slow model may need more: raise llm.{service.name}.idle_seconds or first_token_seconds.",
    )


def stream_cut(service: Service) -> StreamCutError:
    """The stream ended before its closing event."""
    return StreamCutError(
        Failure(
            kind="stream_cut",
            message=f"{service.label} broke off in the middle of its reply.",
            hint="None of its tool calls was run; ask again.",
            retryable=True,
        )
    )


def empty(service: Service) -> StreamCutError:
    """The service answered with nothing at all."""
    return StreamCutError(
        Failure(
            kind="stream_cut",
            message=f"{service.label} answered with nothing.",
            hint=f"Ask again; if it stays, check llm.{service.name}.base_url.",
            retryable=True,
        )
    )


def web_page(service: Service) -> LLMRequestError:
    """A page for people stands where the service should be."""
    place = f" at {service.address}" if service.address else ""
    return LLMRequestError(
        Failure(
            kind="not_found",
            message=f"{service.label}{place} answered with a web page, not as a model service does.",
            hint=f"Check llm.{service.name}.base_url (many end with /v1), and whether a proxy asks to sign in.",
        )
    )


def unreadable(service: Service, what: str) -> StreamCutError:
    """The service sent something that is not its protocol; `what` shows the beginning of it."""
    return StreamCutError(
        Failure(
            kind="format",
            message=f"{service.label} sent what cannot be read: {service.clean(what)[:200]}.",
            hint=f"Check that llm.{service.name}.base_url is the address of such a service.",
            retryable=True,
        )
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as `retry-after-ms` or `retry-after` (seconds or an HTTP date) say."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def lost(kind: FailureKind, message: str, hint: str, status: int = 0) -> LLMTimeoutError:
    """A failure that may pass: asking again can help."""
    return LLMTimeoutError(Failure(kind=kind, message=message, hint=hint, retryable=True), status=status)


def _translate(service: Service, status: int, error: VendorError, wait: float | None) -> LLMError:
    """The typed error for a status and what the vendor said."""
    said = service.clean(error.message)
    about = f": {said}{'' if said.endswith(_ENDS) else '.'}" if said else "."
    codes = set(error.codes)
    if wait is None:
        wait = error.retry_after
    elif status == 429:  # it says when to come again
        error = replace(error, rate=True)
    if is_overflow(status, error):
        failure = Failure(
            kind="context_overflow",
            message=f"The conversation is too long for this model of {service.label}{about}",
            hint="Start a new conversation, or choose a model with a larger window.",
        )
        return ContextOverflowError(failure, status=status)
    if (
        status in (401, 402, 403)
        or codes & _BAD_KEY_CODES
        or codes & _QUOTA_CODES
        or (status == 400 and _BAD_KEY.search(error.message))
        or _out_of_credit(status, error)
    ):
        return _refused(service, status, error, about)
    if status == 429 or status in (503, 529) or "overloaded_error" in codes:
        busy = status != 429
        failure = Failure(
            kind="overloaded" if busy else "rate_limit",
            message=f"{service.label} is {'overloaded' if busy else 'limiting requests'}{about}",
            hint="Wait a little, or set llm.fallback_model.",
            retryable=True,
        )
        return LLMRateLimitError(failure, status=status, retry_after=wait)
    if status in (408, 409, 425) or status >= 500:
        message = f"{service.label} failed (HTTP {status}){about}"
        failed = lost("timeout", message, "Ask again; if it stays, look at the service's status.", status)
        failed.retry_after = wait
        return failed
    return _rejected(service, status, codes, said, about)


def _out_of_credit(status: int, error: VendorError) -> bool:
    """Whether nothing is left to pay with. A limit per time is none, whatever else its text speaks of."""
    if status == 402 or not _QUOTA_CODES.isdisjoint(error.codes):
        return True
    return status in (400, 429) and not error.rate and _NO_CREDIT.search(error.message) is not None


def _refused(service: Service, status: int, error: VendorError, about: str) -> LLMError:
    """No key, a wrong one, one without credit, or one that may not do this."""
    if _out_of_credit(status, error) or (status in (401, 403) and _NO_CREDIT.search(error.message)):
        message = f"The account at {service.label} has no credit left{about}"
        hint = "Add credit there, or choose another provider."
    elif status == 403:
        message = f"{service.label} does not allow this{about}"
        hint = f"The key may lack this model or the service your region. {service.key_hint}"
    else:
        message = f"{service.label} refused the key{about}"
        hint = service.key_hint
    return LLMAuthError(Failure(kind="auth", message=message, hint=hint), status=status)


def _rejected(service: Service, status: int, codes: set[str], said: str, about: str) -> LLMError:
    """The request itself is wrong: the address, the model, an argument."""
    kind: FailureKind = "bad_request"
    message = f"{service.label} rejected the request (HTTP {status}){about}"
    hint = "Asking again changes nothing: change what is asked for, or choose another model."
    missing = not codes.isdisjoint({"model_not_found", "not_found_error", "NOT_FOUND"})
    if status == 404 or missing:
        kind = "not_found"
        message = f"{service.label} does not have this model or address{about}"
        hint = f"`daiku models` lists the models; check llm.model and llm.{service.name}.base_url."
    elif 300 <= status < 400:
        hint = f"The address leads elsewhere: set llm.{service.name}.base_url to its new place."
    elif not said:
        hint = f"Check llm.model and llm.{service.name}.base_url."
    elif not codes.isdisjoint({"content_policy_violation", "content_filter"}):
        kind = "content_filter"
        hint = "The service's content filter blocked the request; say it differently."
    return LLMRequestError(Failure(kind=kind, message=message, hint=hint), status=status, said=said)
