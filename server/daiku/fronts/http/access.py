"""Access control: token, Host and Origin checks, and a body size limit."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.fronts.http.answers import failure_response
from daiku.texts.text import text

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
