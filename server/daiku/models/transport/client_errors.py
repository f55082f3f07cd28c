"""Conversion of exceptions from the HTTP client and vendor SDKs to LLMErrors with hints."""

from __future__ import annotations

import errno
import logging
import socket
import ssl

import httpx2

from daiku.domain.errors import Failure, LLMAuthError, LLMError, LLMRequestError
from daiku.models.transport.failures import from_status, silence_error, temporary_error
from daiku.models.transport.service import Service
from daiku.texts.text import Text, text

log = logging.getLogger(__name__)


def from_exception(service: Service, error: Exception) -> LLMError:
    """Return the LLMError for an exception of httpx2 or a vendor SDK, known by its `response` or its cause."""
    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        try:
            body = response.content
        except httpx2.StreamError:  # closed before its body was read
            body = b""
        return from_status(service, response.status_code, body, response.headers)
    cause = error.__cause__  # SDKs wrap connection errors
    if not isinstance(error, httpx2.HTTPError) and isinstance(cause, httpx2.HTTPError):
        error = cause
    # Logged only: library messages do not help the user.
    log.info("%s: %s: %s", service.label, type(error).__name__, service.clean(str(error)))
    return _translate(service, error)


def _translate(service: Service, error: Exception) -> LLMError:
    label = service.label
    match error:
        case httpx2.ConnectTimeout() if is_closed(error):
            return temporary_error(
                "connection", text("llm.lost", service=label), text("llm.again_or_network")
            )
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            why, address = _describe_connect_error(error), service.place
            message = (
                text("llm.unreachable_at", service=label, address=address, why=why)
                if address
                else text("llm.unreachable", service=label, why=why)
            )
            return temporary_error("connection", message, service.start_hint or text("llm.check_network"))
        case httpx2.TimeoutException():
            return silence_error(service)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            failure = Failure(
                kind="usage",
                message=text("llm.bad_address", service=label),
                hint=text("llm.set_address", name=service.name),
            )
            return LLMRequestError(failure)
        case httpx2.RequestError():
            return temporary_error(
                "connection", text("llm.lost", service=label), text("llm.again_or_network")
            )
        case UnicodeEncodeError():
            failure = Failure(
                kind="auth",
                message=text("llm.bad_key", service=label),
                hint=text("llm.copy_key_again", how=service.key_hint),
            )
            return LLMAuthError(failure)
        case _:
            return LLMRequestError(
                Failure(
                    kind="internal", message=text("llm.unexpected", service=label), hint=text("runs.see_log")
                )
            )


def is_closed(error: httpx2.ConnectTimeout) -> bool:
    """Return True if a connection was made and closed before a response, as httpx-aiohttp reports it."""
    from aiohttp import ClientConnectorError, ClientOSError, ServerDisconnectedError  # when used

    cause = error.__cause__
    is_connected = not isinstance(cause, ClientConnectorError)
    return is_connected and isinstance(cause, ClientOSError | ServerDisconnectedError)


def _describe_connect_error(error: BaseException | None) -> Text:
    """Return why the connection failed, from the chain of causes."""
    visited: list[BaseException] = []
    reason = text("llm.why.no_connection")
    while error is not None and error not in visited:
        visited.append(error)
        match error:
            case ssl.SSLCertVerificationError():
                return text("llm.why.certificate")
            case ssl.SSLError():
                return text("llm.why.no_tls")
            case socket.gaierror():
                return text("llm.why.no_name")
            case ConnectionRefusedError():
                return text("llm.why.nothing_there")
            case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH):
                return text("llm.why.no_network")
            case TimeoutError() | httpx2.TimeoutException():
                # Some clients raise it for every connection failure, so keep looking at the causes.
                reason = text("llm.why.no_answer")
            case _:
                pass
        error = error.__cause__ or error.__context__
    return reason
