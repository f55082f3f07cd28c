"""HTTP responses, size-limited request bodies, and access control: token, Host and Origin checks."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject, Localizable
from daiku.domain.errors import DaikuError, Failure, FailureKind, UsageError
from daiku.texts.text import language_of, text

log = logging.getLogger(__name__)

BODY_SECONDS = 30.0
"""Timeout in seconds for receiving a request body."""
STATUS: Mapping[FailureKind, int] = {"not_found": 404, "busy": 409, "no_provider": 503, "auth": 503}
"""HTTP status by failure kind; others are 422 for client errors, else 500."""
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

P = TypeVar("P", bound=BaseModel)
_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class InvalidRequest(Exception):
    """An invalid request, with one line per problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class RequestRejected(Exception):
    """A request that is rejected with this status."""

    def __init__(self, status: int, failure: Failure) -> None:
        super().__init__(failure.message)
        self.status, self.failure = status, failure


def json_response(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with JSON text."""
    all_headers = {**HEADERS, **(headers or {})}
    return Response(body.encode("utf-8", "replace"), status, all_headers, media_type="application/json")


def model_response(request: Request, model: BaseModel | None) -> Response:
    """Return a model as a response, with texts in the client's language."""
    if model is None:
        return json_response("null")
    if isinstance(model, Localizable):
        model = model.in_language(request_language(request.scope))
    return json_response(model.model_dump_json(by_alias=True, exclude_none=True))


def failure_response(
    scope: Scope,
    status: int,
    failure: Failure,
    problems: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response: `kind`, `message`, `hint`, and `problems` if there are any."""
    fields = failure.in_language(request_language(scope)).model_dump(mode="json", by_alias=True)
    body: JsonObject = {name: fields[name] for name in ("kind", "message", "hint")}
    if problems:
        body["problems"] = list(problems)
    return json_response(_OBJECT.dump_json(body).decode(), status, headers)


def request_language(scope: Scope) -> str:
    """Return the client's preferred language."""
    for name, value in scope["headers"]:
        if name == b"accept-language":
            return language_of(value.decode("latin-1").partition(",")[0].partition(";")[0].strip())
    return language_of("")


async def read_object(request: Request, limit: int) -> JsonObject:
    """Return the JSON object of a request body; empty without a body. Raises RequestRejected, InvalidRequest."""
    raw = await _body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and kind in ("", "application/json"):
        return {}
    if kind != "application/json":
        raise RequestRejected(415, Failure(kind="usage", message=text("http.not_json")))
    try:
        return _OBJECT.validate_json(raw)
    except ValidationError as error:
        raise InvalidRequest(problems_of(error)) from None


async def _body(request: Request, limit: int) -> bytes:
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise RequestRejected(
                        413, Failure(kind="usage", message=text("http.too_large", bytes=limit))
                    )
                parts.append(part)
    except TimeoutError:
        raise RequestRejected(408, Failure(kind="timeout", message=text("http.slow"))) from None
    return b"".join(parts)


def validate_fields(model: type[P], values: JsonObject) -> P:
    """Validate `given` as `model`. Raises InvalidRequest with every problem."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(problems_of(error)) from None


def problems_of(error: ValidationError) -> list[str]:
    """Return one line per problem: its path, and what is wrong."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}" for item in errors]


async def respond_to_error(request: Request, error: Exception) -> Response:
    """Return the response for an exception of a request."""
    scope = request.scope
    match error:
        case InvalidRequest():
            unfit = Failure(kind="usage", message=text("http.unfit"))
            return failure_response(scope, 422, unfit, error.problems)
        case RequestRejected():
            close = {"connection": "close"} if error.status in (408, 413) else None
            return failure_response(scope, error.status, error.failure, headers=close)
        case UsageError(failure=failure):
            status = STATUS.get(failure.kind, 422)
            return failure_response(scope, status, failure, [failure.message] if status == 422 else ())
        case DaikuError():
            return failure_response(scope, STATUS.get(error.failure.kind, 500), error.failure)
        case HTTPException(status_code=status, headers=headers):
            missing = Failure(kind="not_found", message=text("http.404"))
            other = Failure(kind="usage", message=text("http.405"))
            return failure_response(scope, status, missing if status == 404 else other, headers=headers)
        case _:
            log.error("a request failed", exc_info=error)
            message = text("http.internal", what=type(error).__name__)
            return failure_response(scope, 500, Failure(kind="internal", message=message))


MAX_BODY = 1024 * 1024
"""Maximum bytes of a request body."""
OPEN_PATHS = ("/healthz",)
"""Paths that need no token."""

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Access:
    """ASGI middleware that passes allowed requests to `app`.

    `names`: further host names of the server (`NAME` or `NAME:PORT`). A web page in the user's browser is
    rejected by its Origin, or after DNS rebinding by its Host, and it has no token.
    """

    app: ASGIApp
    token: str
    names: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        rejection = self._check_request(scope)
        if rejection is None:
            await self.app(scope, receive, send)
        else:
            status, failure = rejection
            headers = {"connection": "close"}
            if status == 401:
                headers["www-authenticate"] = 'Bearer realm="daiku"'
            await failure_response(scope, status, failure, headers=headers)(scope, receive, send)

    def _check_request(self, scope: Scope) -> tuple[int, Failure] | None:
        headers: Headers = scope["headers"]
        hosts = own_hosts(scope.get("server"), self.names)
        if not _is_allowed(headers, b"host", hosts, needed=True):
            return 403, Failure(kind="auth", message=text("http.host"), hint=text("http.host.hint"))
        if not _is_allowed(
            headers, b"origin", {f"{kind}://{host}" for host in hosts for kind in ("http", "https")}
        ):
            return 403, Failure(kind="auth", message=text("http.origin"))
        if scope["path"] not in OPEN_PATHS and not self._knows_token(scope, headers):
            return 401, Failure(kind="auth", message=text("http.token"), hint=text("http.token.hint"))
        if any(name == b"content-length" and int(value) > MAX_BODY for name, value in headers):
            return 413, body_too_large()
        return None

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        """Return True if the header has the token.

        A token in a URL is never accepted: browsers, proxies, and logs store URLs.
        """
        token = self.token.encode()
        if token in scope["query_string"] or token in scope.get("raw_path", b""):
            return False
        values = [value for name, value in headers if name == b"authorization"]
        if len(values) != 1:
            return False
        scheme, _, credential = values[0].partition(b" ")
        is_valid = hmac.compare_digest(credential.strip(), token)
        return is_valid and scheme.lower() == b"bearer"


def own_hosts(server: tuple[str, int] | None, names: tuple[str, ...]) -> set[str]:
    """Return the valid Host headers: the address at which the request arrived, and `names`."""
    if server is None:
        return set(names)
    address, port = server
    hosts = {address}
    if ip_address(address.partition("%")[0]).is_loopback:
        hosts |= {"localhost", "127.0.0.1", "::1"}
    bracketed = {f"[{host}]" if ":" in host else host for host in hosts}
    return {f"{host}:{port}" for host in bracketed} | (bracketed if port == 80 else set[str]()) | set(names)


def body_too_large() -> Failure:
    """Return the failure for a request body larger than MAX_BODY."""
    return Failure(kind="usage", message=text("http.too_large", bytes=MAX_BODY))


def _is_allowed(headers: Headers, name: bytes, allowed: set[str], *, needed: bool = False) -> bool:
    values = [value.decode("latin-1").lower() for key, value in headers if key == name]
    return all(value in allowed for value in values) and (len(values) == 1 or not (values or needed))
