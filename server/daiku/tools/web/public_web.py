"""HTTP requests to the web: DNS resolved once, checked and pinned; redirects, sizes and times bounded."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from daiku.dataclass import dataclass, replace
from daiku.guard.rules.protected.addresses import WebUrl, parse_url, same_site, why_local, why_not_public
from daiku.texts.text import Text, joined, text
from daiku.version import __version__

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
MAX_BYTES = 2_000_000
SECONDS = 20.0
CONNECT_SECONDS = 8.0
MAX_ADDRESSES = 3
"""Addresses of one name that are tried."""
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
    """What to ask for. `headers` come on top of the usual ones and stay behind at a redirect to
    another site; `private` lets it reach private addresses (a search engine of the person's own)."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    body: bytes | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """What came. `url` is where it stood in the end; `cut` says that there was more than `MAX_BYTES`;
    `by_proxy` that a proxy looked the name up, so that the address behind it was not checked."""

    url: str
    status: int
    kind: str
    """Media type in lower case, "" where none was told."""
    charset: str
    body: bytes
    cut: bool = False
    by_proxy: bool = False


@dataclass(frozen=True, slots=True)
class FetchProblem:
    """Why nothing came; `moved` is the other site that it would have led to."""

    why: Text
    moved: str = ""


class _Stopped(Exception):  # control flow of one module: becomes a Trouble
    """The request cannot be made or answered, for the reason given."""

    def __init__(self, why: Text) -> None:
        super().__init__(why)
        self.why = why


async def resolve_name(host: str, port: int) -> tuple[str, ...]:
    """The addresses of `host`. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def proxy_of_environment(place: WebUrl) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name for `place`; "" for none."""
    from urllib.request import getproxies, proxy_bypass  # 20 ms that only a request has to pay

    if proxy_bypass(place.host):
        return ""
    proxies = getproxies()
    return proxies.get(place.scheme) or proxies.get("all") or ""


class PublicWeb:
    """Makes requests. `private` opens private addresses for everything: for tests, never from settings."""

    def __init__(
        self,
        *,
        private: bool = False,
        resolve: Resolve = resolve_name,
        proxy_for: ProxyFor = proxy_of_environment,
        seconds: float = SECONDS,
    ) -> None:
        self._private = private
        self._resolve = resolve
        self._proxy_for = proxy_for
        self._seconds = seconds
        self._tls: ssl.SSLContext | None = None

    def place(self, url: str, *, private: bool = False) -> WebUrl | Text:
        """Parse `url`; return an error if it may not be requested, e.g. a private address. Does no DNS lookup."""
        place = parse_url(url)
        if isinstance(place, str) or private or self._private:
            return place
        why = why_local(place)
        return joined("clauses", [why, text("web.public_only")]) if why else place

    async def ask(
        self, request: FetchRequest, *, follow: Callable[[str], bool] | None = None
    ) -> FetchResponse | FetchProblem:
        """Send `request` and return the response, or why there is none. Redirects within a site are followed,
        others only if `follow` accepts the host; each hop is checked like the first."""
        bound = asyncio.timeout(self._seconds)
        try:
            async with bound:
                return await self._ask(request, follow)
        except _Stopped as stop:
            return FetchProblem(stop.why)
        except TimeoutError:
            if not bound.expired():
                raise
            return FetchProblem(text("web.no_whole_answer", seconds=f"{self._seconds:g}"))

    async def _ask(
        self, request: FetchRequest, follow: Callable[[str], bool] | None
    ) -> FetchResponse | FetchProblem:
        place = self._checked(request.url, request)
        for _ in range(MAX_REDIRECTS + 1):
            step = await self._step(place, request)
            if isinstance(step, FetchResponse):
                return step
            after = self._checked(urljoin(place.url, step), request)
            if (after.scheme, after.host, after.port) != (place.scheme, place.host, place.port):
                if not same_site(place.host, after.host) and not (follow and follow(after.host)):
                    return FetchProblem(text("web.redirected", url=after.url), moved=after.url)
                request = replace(request, headers=None, private=False)
                after = self._checked(after.url, request)
            request = replace(request, method="GET", body=None)
            place = after
        raise _Stopped(text("web.too_many_redirects", count=MAX_REDIRECTS))

    def _checked(self, url: str, request: FetchRequest) -> WebUrl:
        place = self.place(url, private=request.private)
        if isinstance(place, str):
            raise _Stopped(place)
        return place

    async def _step(self, place: WebUrl, request: FetchRequest) -> FetchResponse | str:
        """The answer of one place, or where it redirects to. Raises _Stopped."""
        proxy = self._proxy_for(place)
        addresses = () if proxy else await self._addresses(place, self._private or request.private)
        problem: Exception | None = None
        for address in addresses or ("",):
            try:
                return await self._exchange(place, request, address, proxy)
            except _Unreached as error:
                problem = error
        raise _Stopped(text("web.unreachable", host=place.host, what=str(problem)))

    async def _addresses(self, place: WebUrl, private: bool) -> tuple[str, ...]:
        """Where the name leads, looked up once: what was checked here is what is connected to."""
        if place.address:
            return (place.address,)
        try:
            found = await self._resolve(place.host, place.port)
        except (OSError, UnicodeError) as error:
            raise _Stopped(text("web.name_not_found", host=place.host, what=_short(error))) from error
        if not found:
            raise _Stopped(text("web.name_without_address", host=place.host))
        inside = [why for address in found if (why := why_not_public(address))]
        if inside and not private:
            raise _Stopped(text("web.leads_inside", host=place.host, what=inside[0]))
        return found[:MAX_ADDRESSES]

    async def _exchange(
        self, place: WebUrl, request: FetchRequest, address: str, proxy: str
    ) -> FetchResponse | str:
        import httpx2  # 65 ms that the start of the server does not have to pay

        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        url = httpx2.URL(place.url)
        if url.raw_host.decode("ascii").strip("[]") != place.host:
            raise _Stopped(text("web.two_readings"))
        headers = {**HEADERS, **(request.headers or {}), "host": url.netloc.decode("ascii")}
        pinned = url.copy_with(host=address) if address else url
        sent = httpx2.Request(
            request.method,
            pinned,
            headers=headers,
            content=request.body,
            extensions={
                "sni_hostname": place.host,
                "timeout": httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS).as_dict(),
            },
        )
        try:
            # One connection a request: a pool would know it by its address, not by its name.
            async with httpx2.AsyncHTTPTransport(
                verify=self._tls,
                trust_env=False,
                proxy=proxy or None,
                limits=httpx2.Limits(max_keepalive_connections=0),
            ) as transport:
                response = await transport.handle_async_request(sent)
                try:
                    return await _read(place, response, by_proxy=bool(proxy))
                finally:
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _Unreached(_short(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError) as error:
            raise _Stopped(text("web.broke_off", host=place.host, what=_short(error))) from error
        except ImportError as error:
            raise _Stopped(Text(_short(error))) from error  # a SOCKS proxy without socksio


class _Unreached(Exception):  # control flow of one module: the next address is tried
    """No connection to this address."""


async def _read(place: WebUrl, response: httpx2.Response, *, by_proxy: bool) -> FetchResponse | str:
    moved = response.headers.get("location")
    if response.status_code in (301, 302, 303, 307, 308) and moved:
        return moved
    kind, charset = _content_type(response.headers.get("content-type", ""))
    body, cut = b"", False
    if readable(kind):
        pieces = _unpacked(response.aiter_raw(), response.headers.get("content-encoding", ""))
        body, cut = await _bounded(pieces)
    return FetchResponse(place.url, response.status_code, kind, charset, body, cut, by_proxy)


def readable(kind: str) -> bool:
    """True for media types that are text, or may turn out to be."""
    if kind in ("", "application/octet-stream") or kind.startswith("text/"):
        return True
    return kind.endswith(("json", "xml", "yaml", "javascript", "toml", "x-sh", "+ld", "sql", "graphql"))


def _content_type(header: str) -> tuple[str, str]:
    kind, *params = header.split(";")
    named = (param.partition("=") for param in params)
    charset = next((v.strip(" \"'") for k, _, v in named if k.strip().lower() == "charset"), "")
    return kind.strip().lower(), charset.lower()


async def _bounded(pieces: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False


async def _unpacked(pieces: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The body without its compression, never more than `MAX_BYTES` from one piece: a small bomb
    stays small. Raises _Stopped."""
    match encoding.strip().lower():
        case "" | "identity":
            async for piece in pieces:
                yield piece
            return
        case "gzip" | "x-gzip":
            unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        case "deflate":
            unpack = zlib.decompressobj()
        case other:
            raise _Stopped(text("web.unknown_packing", what=other[:30]))
    try:
        async for piece in pieces:
            yield unpack.decompress(piece, MAX_BYTES + 1)
    except zlib.error as error:
        raise _Stopped(text("web.damaged_packing")) from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
