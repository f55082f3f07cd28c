"""HTTP requests to model services: a shared client, silence timeouts, and responses decoded to model events."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Protocol

import httpx2
from httpx_aiohttp.httpx2 import Httpx2AiohttpClient
from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.messages import ModelEvent, Reply, TextDelta, ThinkingDelta
from daiku.models.transport.addresses import join_url
from daiku.models.transport.client_errors import from_exception, is_closed
from daiku.models.transport.failures import (
    empty_response_error,
    from_status,
    silence_error,
    unreadable_error,
    web_page_error,
)
from daiku.models.transport.service import Service
from daiku.models.transport.stream import parse_json

CONNECT_SECONDS = 30.0
WRITE_SECONDS = 120.0
# After the closing event, the rest of the body is read so that the connection can be reused.
DRAIN_SECONDS = 0.2


class Decoder(Protocol):
    """Incremental decoder of one reply.

    `feed` returns the completed deltas and raises LLMError for an error event; `ended` is True after the closing
    event; `finish` returns the reply or raises StreamCutError.
    """

    @property
    def ended(self) -> bool: ...

    def feed(self, data: bytes) -> list[ModelEvent]: ...

    def finish(self) -> Reply: ...


def read_object(service: Service, data: bytes) -> JsonObject:
    """Return the JSON object of one event or body. Raises LLMError for anything else."""
    try:
        value = parse_json(data)
    except ValueError as error:
        raise unreadable_error(service, data[:300].decode("utf-8", "replace")) from error
    if isinstance(value, dict):
        return value
    raise unreadable_error(service, data[:300].decode("utf-8", "replace"))


def to_count(value: JsonValue | None) -> int:
    """Return `value` as a count; 0 if it is not a positive number."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def build_timeouts(settings: ProviderSettings) -> httpx2.Timeout:
    """Return the timeouts of one request, for silence before the first byte; `stream_reply` handles later silence."""
    return httpx2.Timeout(
        connect=CONNECT_SECONDS,
        read=float(max(settings.first_token_seconds, settings.idle_seconds)),
        write=WRITE_SECONDS,
        pool=None,
    )


@cache
def _create_tls_context(*_certificates: str | None) -> ssl.SSLContext:
    """Return the SSL context with the trusted certificates. Cached, as loading dominates the client's creation."""
    return httpx2.create_ssl_context()


class _Client(Httpx2AiohttpClient):
    """HTTP client that resends a request once if its connection was closed before a response began.

    Servers close idle connections, and llama.cpp closes right after a streamed reply, when the next request may
    already be on its way. Browsers resend too, for any method (RFC 9112, 9.3.1, covers safe ones).
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except httpx2.ConnectTimeout as error:
            if not is_closed(error):
                raise
        return await super().send(request, **options)


def create_http_client(settings: ProviderSettings) -> httpx2.AsyncClient:
    """Create the client that all requests of one provider share, as creating one costs more than a request.

    Proxies and certificates come from the usual environment variables. The transport is aiohttp's: its parser takes a
    tenth of h11's time per streamed delta.
    """
    return _Client(
        verify=_create_tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        timeout=build_timeouts(settings),
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=20, keepalive_expiry=120),
        follow_redirects=True,
        event_hooks={"response": [_stay_at_origin]},
    )


async def _stay_at_origin(response: httpx2.Response) -> None:
    """Prevent redirects to another origin: the prompt and the key are meant for the configured address."""
    location = response.headers.get("location")
    if location is None or not response.is_redirect:
        return
    url = response.request.url
    try:
        target = url.join(location)
    except (httpx2.InvalidURL, ValueError):
        target = httpx2.URL("")
    if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
        del response.headers["location"]


class HttpService:
    """Model service that is called without an SDK. One client, created on first use, for all requests."""

    __slots__ = ("_address", "_client", "_headers", "_service", "_settings")

    def __init__(
        self, service: Service, settings: ProviderSettings, address: str, key_headers: Mapping[str, str]
    ) -> None:
        self._service, self._settings, self._address = service, settings, address
        self._headers = {"content-type": "application/json", **settings.headers}
        if settings.api_key.get_secret_value():
            self._headers.update(key_headers)
        self._client: httpx2.AsyncClient | None = None

    async def send(
        self, method: str, path: str, content: bytes | None, *, stream: bool = True
    ) -> httpx2.Response:
        """Send a request and return the response, unread if `stream`. Raises LLMError for a status above 299."""
        if self._client is None:
            self._client = create_http_client(self._settings)
        url = join_url(self._address, path)
        try:
            request = self._client.build_request(method, url, content=content, headers=self._headers)
            response = await self._client.send(request, stream=stream)
            if response.is_success:
                return response
            try:
                body = await response.aread()
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise from_exception(self._service, error) from error
        raise from_status(self._service, response.status_code, body, response.headers)

    async def read(self, method: str, path: str, content: bytes | None = None) -> JsonObject:
        """Return the JSON object of the response. Raises LLMError."""
        response = await self.send(method, path, content, stream=False)
        return read_object(self._service, response.content)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


async def stream_reply(
    service: Service,
    settings: ProviderSettings,
    open_response: Callable[[], Awaitable[httpx2.Response]],
    decoder: Decoder,
) -> AsyncGenerator[ModelEvent]:
    """Yield the deltas of a reply as they arrive, then its Reply. Raises LLMError.

    `open_response` returns the unread response. Leaving the generator closes the response: a reply that was read
    completely returns the connection to the pool, any other closes the socket.
    """
    try:
        response = await open_response()
    except Exception as error:  # vendor SDKs raise their own exceptions; all become LLMError
        raise from_exception(service, error) from error
    if response.headers.get("content-type", "").startswith("text/html"):
        await response.aclose()
        raise web_page_error(service)
    is_uncompressed = "content-encoding" not in response.headers
    pieces = response.aiter_raw() if is_uncompressed else response.aiter_bytes()
    timer = SilenceTimer(float(settings.idle_seconds))
    has_no_deltas, data = True, b""
    try:
        async for data in pieces:
            timer.pause()
            for event in decoder.feed(data):
                has_no_deltas = False
                yield event
            if decoder.ended:
                break
            timer.start()
        if not data:
            raise empty_response_error(service)
        reply = decoder.finish()
        if has_no_deltas:  # the service did not stream, so show the complete reply
            for event in _to_deltas(reply):
                yield event
        yield reply
        await _drain(pieces)
    except asyncio.CancelledError as error:
        if timer.has_cancelled():
            raise silence_error(service, settings.idle_seconds) from error
        raise
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise from_exception(service, error) from error
    finally:
        timer.stop()
        await pieces.aclose()
        await response.aclose()


def _to_deltas(reply: Reply) -> list[ModelEvent]:
    """Return the reply as deltas. Daiku's own texts are omitted, as the Reply keeps them as a `Text`."""
    message = reply.message
    deltas: list[ModelEvent] = [ThinkingDelta(message.thinking)] if message.thinking else []
    return [*deltas, TextDelta(message.text)] if message.text and not message.text.id else deltas


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in pieces:
                pass
    except (TimeoutError, httpx2.HTTPError):
        pass  # the reply is complete; only the connection cannot be reused


class SilenceTimer:
    """Timeout for the silence between two pieces, with one timer per reply that cancels the waiting task.

    A timer per read (asyncio.timeout) would cost as much as the read. The first piece is not covered: the client's
    own timeout limits the wait for it.
    """

    __slots__ = ("_expired", "_limit", "_loop", "_since", "_task", "_timer")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._expired = False

    def start(self) -> None:
        """Start timing, as the current task now waits for the next piece."""
        self._since = self._loop.time()
        self._task = asyncio.current_task()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + self._limit, self._check)

    def pause(self) -> None:
        """Pause timing while the consumer handles a piece."""
        self._task = None

    def has_cancelled(self) -> bool:
        """Return True if this timer caused the cancellation that was just caught, and undo that cancellation."""
        task = asyncio.current_task()
        return self._expired and task is not None and task.uncancel() == 0

    def stop(self) -> None:
        """Cancel the timer."""
        self._task = None
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        end = (self._since if self._task is not None else self._loop.time()) + self._limit
        if self._task is not None and end <= self._loop.time():
            self._expired = True
            self._task.cancel()
        else:
            self._timer = self._loop.call_at(end, self._check)
