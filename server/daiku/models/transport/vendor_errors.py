"""Parser for vendor error documents of any shape: message, codes, status, and retry delay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject

# Messages of services for a request that exceeds the context window.
_OVERFLOW = re.compile(
    r"context[_ ]length"
    r"|context[_ ](?:window|size|limit)"
    r"|maximum (?:model|prompt|input) length"
    r"|(?:prompt|input|request|messages?)\b[^.]{0,40}\btoo (?:long|large)\b"
    r"|prompt exceeds"
    r"|too large for (?:this |the )?model"
    r"|exceeds? (?:the )?(?:max|maximum)[^.]{0,40}(?:tokens|length|context)"
    r"|exceed(?:s|ed)? (?:the )?model token limit"
    r"|input token count"
    r"|token count of \d+ exceeds"
    r"|too many (?:prompt )?tokens"
    r"|range of input length should be"
    r"|reduce the length of"
    r"|when context the overflows"
    r"|tokens to keep from the initial prompt"
    r"|`?inputs`? tokens \+ `?max_new_tokens`?"
    r"|request payload size exceeds",
    re.IGNORECASE,
)
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "string_above_max_length",
    "too_many_prompt_tokens",
}
_LOADING = re.compile(
    r"\bloading (?:the )?model\b|\bmodel\b.{0,100}\bis (?:currently |still )?loading", re.IGNORECASE
)
_RATE_QUOTA = re.compile(r"per(?:second|minute|hour|day)", re.IGNORECASE)
_RATE_CODES = {"rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests"}
_PLACEHOLDER_MESSAGE = re.compile(r"provider returned error\.?|error|upstream error\.?", re.IGNORECASE)
"""Placeholder messages of gateways that hide the message of the service behind them."""
_RATE_UNIT = re.compile(r"per[ -](?:min|minute|day|hour|second)|\b(?:TPM|RPM|TPD|RPD)\b", re.IGNORECASE)
_RETRY_IN = re.compile(r"try again in ((?:\d+h)?(?:\d+m(?!s))?(?:[\d.]+(?:ms|s))?)", re.IGNORECASE)
_DURATION = re.compile(r"([\d.]+)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

# HTTP status for the error codes in a stream or a 200 body.
STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "tool_use_failed": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "UNAUTHENTICATED": 401,
    "billing_error": 402,
    "permission_error": 403,
    "PERMISSION_DENIED": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "NOT_FOUND": 404,
    "timeout_error": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "RESOURCE_EXHAUSTED": 429,
    "server_error": 500,
    "api_error": 500,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True)
class VendorError:
    """Parsed vendor error.

    `rate` is True for a rate limit, known by its code, quota name, retry delay, or unit of time.
    """

    message: str = ""
    codes: tuple[str, ...] = ()
    status: int = 0
    retry_after: float | None = None
    rate: bool = False
    param: str = ""
    """Name of the invalid request field."""


def is_loading(status: int, message: str) -> bool:
    """Return True if a server reports that it is still loading its model, as llama.cpp and TGI do."""
    return status == 503 and _LOADING.search(message) is not None


def read_error(document: JsonValue) -> VendorError:
    """Parse the error in `document`.

    It is the object itself, under `error`, `errors`, `detail`, or `message`, in a list, or in a JSON string.
    """
    messages: list[str] = []
    codes: list[str] = []
    status = 0
    retry_after: float | None = None
    rate = False
    param = ""
    for item in _iterate_errors(document, 0):
        if isinstance(item, str):
            messages.append(item)
            continue
        for key in ("type", "code", "status", "reason"):
            match item.get(key):
                case bool() | None:
                    pass
                case int() as number if 400 <= number < 600:
                    status = status or number
                case str() as name if name.isdigit() and 400 <= int(name) < 600:
                    status = status or int(name)
                case str() as name if name not in codes:
                    codes.append(name)
                case _:
                    pass
        param_value = item.get("param")
        param = param or (param_value if isinstance(param_value, str) else "")
        quota = item.get("quotaId")
        rate = rate or (isinstance(quota, str) and _RATE_QUOTA.search(quota) is not None)
        match item.get("retryDelay"):
            case str() as delay:
                retry_after = parse_duration(delay)
            case _:
                pass
    candidates = [m for m in messages if m]
    message = next(
        (m for m in candidates if not _PLACEHOLDER_MESSAGE.fullmatch(m.strip())), next(iter(candidates), "")
    )
    if retry_after is None and (retry_match := _RETRY_IN.search(message)):
        retry_after = parse_duration(retry_match[1])
    rate = rate or retry_after is not None or not _RATE_CODES.isdisjoint(codes)
    rate = rate or _RATE_UNIT.search(message) is not None
    return VendorError(message, tuple(codes), status, retry_after, rate, param)


_NESTED = (
    "error",
    "message",
    "detail",
    "details",
    "errors",
    "msg",
    "response",
    "metadata",
    "raw",
    "violations",
)


def _iterate_errors(value: JsonValue, depth: int) -> Iterator[str | JsonObject]:
    """Yield every object and message of an error document, outermost first."""
    if depth > 6:
        return
    match value:
        case str() if value[:1] in ("{", "["):
            try:
                yield from _iterate_errors(cast("JsonValue", json.loads(value)), depth + 1)
            except ValueError:
                yield value
        case str():
            yield value
        case list():
            for item in value[:20]:
                yield from _iterate_errors(item, depth + 1)
        case dict():
            yield value
            for key in _NESTED:
                if key in value:
                    yield from _iterate_errors(value[key], depth + 1)
        case _:
            pass


def is_overflow(status: int, error: VendorError) -> bool:
    """Return True if the request exceeded the context window, not just a rate limit."""
    if status in (401, 402, 403, 404, 408):
        return False
    if status == 413 or not _OVERFLOW_CODES.isdisjoint(error.codes):
        return True
    if status == 429 and not re.search(r"request too large", error.message, re.IGNORECASE):
        return False  # "too many tokens per minute" is a rate limit
    if status == 429 or not _RATE_UNIT.search(error.message):
        return _OVERFLOW.search(error.message) is not None
    return False


def parse_duration(text: str) -> float | None:
    """Parse a duration such as "1m30s" and return seconds; None if it is invalid."""
    parts = _DURATION.findall(text)
    try:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None
    except ValueError:
        return None
