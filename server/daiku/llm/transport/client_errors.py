"""Exceptions of the HTTP client and of vendors' SDKs as LLMErrors, each with what to do about it."""

from __future__ import annotations

import errno
import logging
import socket
import ssl

import httpx2

from daiku.domain.errors import Failure, LLMAuthError, LLMError, LLMRequestError
from daiku.llm.transport.failures import from_status, lost, silent
from daiku.llm.transport.service import Service

log = logging.getLogger(__name__)


def from_exception(service: Service, error: Exception) -> LLMError:
    """The error of an exception of httpx2 or of a vendor's SDK (known by its `response` or its cause)."""
    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        try:
            body = response.content
        except httpx2.StreamError:  # closed before it was read
            body = b""
        return from_status(service, response.status_code, body, response.headers)
    cause = error.__cause__  # an SDK wraps what happened to the connection
    if not isinstance(error, httpx2.HTTPError) and isinstance(cause, httpx2.HTTPError):
        error = cause
    # For the log alone: a library's words say nothing to a person.
    log.info("%s: %s: %s", service.label, type(error).__name__, service.clean(str(error)))
    return _translate(service, error)


def _translate(service: Service, error: Exception) -> LLMError:
    place = f" at {service.address}" if service.address else ""
    match error:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            return lost(
                "connection",
                f"{service.label} cannot be reached{place}: {_connect_problem(error)}.",
                service.start_hint or "Check the network, the proxy and the address.",
            )
        case httpx2.TimeoutException():
            return silent(service)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            failure = Failure(
                kind="usage",
                message=f"The address of {service.label} cannot be used.",
                hint=f"Set llm.{service.name}.base_url to an address that begins with http:// or https://.",
            )
            return LLMRequestError(failure)
        case httpx2.RequestError():
            message = f"The connection to {service.label} was lost."
            return lost("connection", message, "Ask again; if it stays, check the network and the proxy.")
        case UnicodeEncodeError():
            failure = Failure(
                kind="auth",
                message=f"The key or a header of {service.label} has characters that cannot be sent.",
                hint=f"Copy it again: {service.key_hint}",
            )
            return LLMAuthError(failure)
        case _:
            return LLMRequestError(
                Failure(
                    kind="internal",
                    message=f"The call of {service.label} failed in an unexpected way.",
                    hint="The log has the details (`Daiku: Show Log`, or logs/daiku.log).",
                )
            )


def _connect_problem(error: BaseException | None) -> str:
    """Why no connection was made, by the kind of what lies behind the client's own error."""
    seen: list[BaseException] = []
    last = "no connection could be made"
    while error is not None and error not in seen:
        seen.append(error)
        match error:
            case ssl.SSLCertVerificationError():
                return "its certificate is not trusted here"
            case ssl.SSLError():
                return "it speaks no TLS (https) there"
            case socket.gaierror():
                return "nobody knows its name"
            case ConnectionRefusedError():
                return "nothing answers there"
            case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH):
                return "no network leads there"
            case TimeoutError() | httpx2.TimeoutException():
                last = "no answer"  # some clients call every failure to connect so: what lies behind counts
            case _:
                pass
        error = error.__cause__ or error.__context__
    return last
