"""Who may ask: the token, a Host and an Origin of this server's own, and not too much at once."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.fronts.http.answers import failure_answer
from daiku.texts.text import text

MAX_BODY = 1024 * 1024
"""Bytes of a request's body."""
OPEN_PATHS = ("/healthz",)
"""What is answered without a token."""

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Access:
    """Passes allowed requests to `app`. `names`: further host names of this server (`NAME` or `NAME:PORT`).

    A web page in the user's browser is refused by its Origin, after DNS rebinding by its Host, and has no token."""

    app: ASGIApp
    token: str
    names: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is None:
            await self.app(scope, receive, send)
        else:
            status, failure = refused
            headers = {"connection": "close"}
            if status == 401:
                headers["www-authenticate"] = 'Bearer realm="daiku"'
            await failure_answer(scope, status, failure, headers=headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, Failure] | None:
        headers: Headers = scope["headers"]
        hosts = own_hosts(scope.get("server"), self.names)
        if not _one_of(headers, b"host", hosts, needed=True):
            return 403, Failure(kind="auth", message=text("http.host"), hint=text("http.host.hint"))
        if not _one_of(
            headers, b"origin", {f"{kind}://{host}" for host in hosts for kind in ("http", "https")}
        ):
            return 403, Failure(kind="auth", message=text("http.origin"))
        if scope["path"] not in OPEN_PATHS and not self._knows_token(scope, headers):
            return 401, Failure(kind="auth", message=text("http.token"), hint=text("http.token.hint"))
        if any(name == b"content-length" and int(value) > MAX_BODY for name, value in headers):
            return 413, too_large()
        return None

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        """Only by the header: what stands in an address is kept by browsers, proxies and logs."""
        token = self.token.encode()
        if token in scope["query_string"] or token in scope.get("raw_path", b""):
            return False
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, credential = given[0].partition(b" ")
        right = hmac.compare_digest(credential.strip(), token)
        return right and scheme.lower() == b"bearer"


def own_hosts(server: tuple[str, int] | None, names: tuple[str, ...]) -> set[str]:
    """The Host headers that name this server: the address at which a request arrived, and `names`."""
    if server is None:
        return set(names)
    address, port = server
    own = {address}
    if ip_address(address.partition("%")[0]).is_loopback:
        own |= {"localhost", "127.0.0.1", "::1"}
    written = {f"[{each}]" if ":" in each else each for each in own}
    return {f"{each}:{port}" for each in written} | (written if port == 80 else set[str]()) | set(names)


def too_large() -> Failure:
    """The body of a request is larger than MAX_BODY."""
    return Failure(kind="usage", message=text("http.too_large", bytes=MAX_BODY))


def _one_of(headers: Headers, name: bytes, allowed: set[str], *, needed: bool = False) -> bool:
    given = [value.decode("latin-1").lower() for key, value in headers if key == name]
    return all(value in allowed for value in given) and (len(given) == 1 or not (given or needed))
