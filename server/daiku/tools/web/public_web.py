"""HTTP requests to public addresses, with pinned DNS results and limits."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from daiku.dataclass import dataclass, replace
from daiku.guard.rules.protected.addresses import (
    WebUrl,
    explain_local,
    explain_not_public,
    parse_url,
    same_site,
)
from daiku.texts.text import Text, joined, text
from daiku.version import __version__

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
"""Redirects that are followed."""
MAX_BYTES = 2_000_000
"""Bytes of one response body."""
TIMEOUT_SECONDS = 20.0
"""Seconds of the default timeout of a request."""
CONNECT_SECONDS = 8.0
"""Seconds of the timeout of one connection."""
MAX_ADDRESSES = 3
"""Addresses of one host that are tried."""
USER_AGENT = f"Mozilla/5.0 (compatible; Daiku/{__version__})"
HEADERS = {
    "user-agent": USER_AGENT,
    "accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5",
    "accept-language": "en,ja;q=0.8,*;q=0.5",
    "accept-encoding": "gzip, deflate",
}

Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]
ProxyFor = Callable[[WebUrl], str]


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request.

    `headers` are added to the default ones, and dropped at a redirect to another site; `private` allows
    private addresses (a search engine of the user's own).
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    body: bytes | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response.

    `url`: its final URL; `cut`: the body had more than `MAX_BYTES`; `by_proxy`: a proxy resolved the host
    name, so its address was not checked.
    """

    url: str
    status: int
    kind: str
    """Media type in lower case; "" if unknown."""
    charset: str
    body: bytes
    cut: bool = False
    by_proxy: bool = False


@dataclass(frozen=True, slots=True)
class FetchProblem:
    """The reason for a failed request; `moved`: the other site that it redirected to."""

    why: Text
    moved: str = ""


class _RequestFailed(Exception):  # control flow of this module: becomes a FetchProblem
    """The request cannot be sent or answered."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


async def resolve_name(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of `host`. Raises OSError."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))


def find_proxy(place: WebUrl) -> str:
    """Return the proxy for `place` from HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, and NO_PROXY; "" for none."""
    from urllib.request import getproxies, proxy_bypass  # when used: the import takes 20 ms

    if proxy_bypass(place.host):
        return ""
    proxies = getproxies()
    return proxies.get(place.scheme) or proxies.get("all") or ""


class PublicWeb:
    """An HTTP client for public addresses. `private` allows private ones for all requests: only for tests."""

    def __init__(
        self,
        *,
        private: bool = False,
        resolve: Resolve = resolve_name,
        proxy_for: ProxyFor = find_proxy,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._private = private
        self._resolve = resolve
        self._proxy_for = proxy_for
        self._seconds = seconds
        self._tls: ssl.SSLContext | None = None

    def check_url(self, url: str, *, private: bool = False) -> WebUrl | Text:
        """Parse `url`, or return why it may not be requested (such as a private address). Does no DNS lookup."""
        place = parse_url(url)
        if isinstance(place, str) or private or self._private:
            return place
        reason = explain_local(place)
        return joined("clauses", [reason, text("web.public_only")]) if reason else place

    async def fetch(
        self, request: FetchRequest, *, follow: Callable[[str], bool] | None = None
    ) -> FetchResponse | FetchProblem:
        """Send `request` and return the response, or why there is none.

        Redirects within a site are followed, others only if `follow` accepts the host. Each hop is checked
        like the first.
        """
        deadline = asyncio.timeout(self._seconds)
        try:
            async with deadline:
                return await self._fetch(request, follow)
        except _RequestFailed as failure:
            return FetchProblem(failure.reason)
        except TimeoutError:
            if not deadline.expired():
                raise
            return FetchProblem(text("web.no_whole_answer", seconds=f"{self._seconds:g}"))

    async def _fetch(
        self, request: FetchRequest, follow: Callable[[str], bool] | None
    ) -> FetchResponse | FetchProblem:
        place = self._check(request.url, request)
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._fetch_once(place, request)
            if isinstance(result, FetchResponse):
                return result
            next_place = self._check(urljoin(place.url, result), request)
            if (next_place.scheme, next_place.host, next_place.port) != (
                place.scheme,
                place.host,
                place.port,
            ):
                if not same_site(place.host, next_place.host) and not (follow and follow(next_place.host)):
                    return FetchProblem(text("web.redirected", url=next_place.url), moved=next_place.url)
                request = replace(request, headers=None, private=False)
                next_place = self._check(next_place.url, request)
            request = replace(request, method="GET", body=None)
            place = next_place
        raise _RequestFailed(text("web.too_many_redirects", count=MAX_REDIRECTS))

    def _check(self, url: str, request: FetchRequest) -> WebUrl:
        place = self.check_url(url, private=request.private)
        if isinstance(place, str):
            raise _RequestFailed(place)
        return place

    async def _fetch_once(self, place: WebUrl, request: FetchRequest) -> FetchResponse | str:
        """Return the response of one URL, or its redirect. Raises _RequestFailed."""
        proxy = self._proxy_for(place)
        addresses = () if proxy else await self._resolve_addresses(place, self._private or request.private)
        problem: Exception | None = None
        for address in addresses or ("",):
            try:
                return await self._exchange(place, request, address, proxy)
            except _ConnectFailed as error:
                problem = error
        raise _RequestFailed(text("web.unreachable", host=place.host, what=str(problem)))

    async def _resolve_addresses(self, place: WebUrl, private: bool) -> tuple[str, ...]:
        """Resolve the host once, so that the checked addresses are the ones connected to."""
        if place.address:
            return (place.address,)
        try:
            addresses = await self._resolve(place.host, place.port)
        except (OSError, UnicodeError) as error:
            raise _RequestFailed(
                text("web.name_not_found", host=place.host, what=_shorten_error(error))
            ) from error
        if not addresses:
            raise _RequestFailed(text("web.name_without_address", host=place.host))
        local_reasons = [reason for address in addresses if (reason := explain_not_public(address))]
        if local_reasons and not private:
            raise _RequestFailed(text("web.leads_inside", host=place.host, what=local_reasons[0]))
        return addresses[:MAX_ADDRESSES]

    async def _exchange(
        self, place: WebUrl, request: FetchRequest, address: str, proxy: str
    ) -> FetchResponse | str:
        import httpx2  # when used: the import takes 65 ms

        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        url = httpx2.URL(place.url)
        if url.raw_host.decode("ascii").strip("[]") != place.host:
            raise _RequestFailed(text("web.two_readings"))
        headers = {**HEADERS, **(request.headers or {}), "host": url.netloc.decode("ascii")}
        pinned_url = url.copy_with(host=address) if address else url
        prepared = httpx2.Request(
            request.method,
            pinned_url,
            headers=headers,
            content=request.body,
            extensions={
                "sni_hostname": place.host,
                "timeout": httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS).as_dict(),
            },
        )
        try:
            # One connection per request: a pool would identify it by address instead of host name.
            async with httpx2.AsyncHTTPTransport(
                verify=self._tls,
                trust_env=False,
                proxy=proxy or None,
                limits=httpx2.Limits(max_keepalive_connections=0),
            ) as transport:
                response = await transport.handle_async_request(prepared)
                try:
                    return await _read_response(place, response, by_proxy=bool(proxy))
                finally:
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _ConnectFailed(_shorten_error(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError) as error:
            raise _RequestFailed(
                text("web.broke_off", host=place.host, what=_shorten_error(error))
            ) from error
        except ImportError as error:
            raise _RequestFailed(Text(_shorten_error(error))) from error  # a SOCKS proxy without socksio


class _ConnectFailed(Exception):  # control flow of this module: the next address is tried
    """The connection to an address failed."""


async def _read_response(place: WebUrl, response: httpx2.Response, *, by_proxy: bool) -> FetchResponse | str:
    location = response.headers.get("location")
    if response.status_code in (301, 302, 303, 307, 308) and location:
        return location
    kind, charset = _parse_content_type(response.headers.get("content-type", ""))
    body, cut = b"", False
    if is_readable(kind):
        pieces = _decompress(response.aiter_raw(), response.headers.get("content-encoding", ""))
        body, cut = await _read_bounded(pieces)
    return FetchResponse(place.url, response.status_code, kind, charset, body, cut, by_proxy)


def is_readable(kind: str) -> bool:
    """Return True for media types that are text or may contain text."""
    if kind in ("", "application/octet-stream") or kind.startswith("text/"):
        return True
    return kind.endswith(("json", "xml", "yaml", "javascript", "toml", "x-sh", "+ld", "sql", "graphql"))


def _parse_content_type(header: str) -> tuple[str, str]:
    kind, *params = header.split(";")
    pairs = (param.partition("=") for param in params)
    charset = next((v.strip(" \"'") for k, _, v in pairs if k.strip().lower() == "charset"), "")
    return kind.strip().lower(), charset.lower()


async def _read_bounded(pieces: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False


async def _decompress(pieces: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Decompress the body, at most `MAX_BYTES` from one piece, to limit decompression bombs.

    Raises _RequestFailed.
    """
    match encoding.strip().lower():
        case "" | "identity":
            async for piece in pieces:
                yield piece
            return
        case "gzip" | "x-gzip":
            decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
        case "deflate":
            decompressor = zlib.decompressobj()
        case other:
            raise _RequestFailed(text("web.unknown_packing", what=other[:30]))
    try:
        async for piece in pieces:
            yield decompressor.decompress(piece, MAX_BYTES + 1)
    except zlib.error as error:
        raise _RequestFailed(text("web.damaged_packing")) from error


def _shorten_error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
