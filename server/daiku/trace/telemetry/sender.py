"""Sender of spans to a collector, in its own thread; drops spans if the collector is too slow."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from threading import Event, Lock, Thread
from time import monotonic
from typing import cast

from daiku.trace.rules.spans import Span
from daiku.trace.telemetry.endpoint import Endpoint

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
"""gRPC method of an OTLP export."""
TRY_LATER = frozenset((408, 425, 429, 500, 502, 503, 504))
"""HTTP status codes after which a retry can succeed."""
MOST_ANSWERED = 65_536
"""Bytes of a response that are read, at most."""

Send = Callable[[bytes, float], None]
"""Sends one request with a timeout in seconds. Raises NotSent."""


class NotSent(Exception):
    """The collector did not accept the spans.

    `lasting`: a retry cannot succeed. `pause`: seconds of its `Retry-After` header.
    """

    def __init__(self, why: str, *, lasting: bool = False, pause: float = 0.0) -> None:
        super().__init__(why)
        self.lasting = lasting
        self.pause = pause


def open_collector(to: Endpoint) -> Send:
    """Return the function that sends to a collector. Imports its libraries; call it in the sending thread."""
    return _open_grpc(to) if to.grpc else _open_http(to)


def _open_http(to: Endpoint) -> Send:
    # Imported in the sending thread: most processes send nothing.
    import http.client
    import urllib.error
    import urllib.request

    from daiku.texts.rules.retryafter import parse_retry_after  # likewise: it imports email.utils

    headers = {"content-type": "application/x-protobuf", "user-agent": "daiku", **to.headers}

    def send(body: bytes, seconds: float) -> None:
        request = urllib.request.Request(to.target, body, headers, method="POST")  # noqa: S310  # http(s) only, checked
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  # likewise
                answer.read(MOST_ANSWERED)
        except urllib.error.HTTPError as error:
            with error:
                response_headers = {name.lower(): value for name, value in error.headers.items()}
                pause = parse_retry_after(response_headers, datetime.now(UTC)) or 0.0
                lasting = error.code not in TRY_LATER
                raise NotSent(f"HTTP {error.code}", lasting=lasting, pause=pause) from error
        except urllib.error.URLError as error:
            raise NotSent(str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(str(error) or type(error).__name__) from error

    return send


def _open_grpc(to: Endpoint) -> Send:
    import grpc  # an optional extra that takes 40 ms to import

    options = (("grpc.enable_retries", 0), ("grpc.primary_user_agent", "daiku"))
    channel = (
        grpc.secure_channel(to.target, grpc.ssl_channel_credentials(), options)
        if to.secure
        else grpc.insecure_channel(to.target, options)
    )
    # The message is already encoded: bytes in, bytes out.
    export = cast("Callable[..., bytes]", channel.unary_unary(METHOD))
    metadata = tuple((name.lower(), value) for name, value in to.headers.items())
    lasting = (
        *(grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED),
        *(grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT),
    )

    def send(body: bytes, seconds: float) -> None:
        try:
            export(body, timeout=seconds, metadata=metadata)
        except grpc.RpcError as error:
            code = error.code()
            raise NotSent(f"gRPC {code.name}", lasting=code in lasting) from error

    return send


logger = logging.getLogger(__name__)

MOST_WAITING = 4096
"""Spans in the queue, at most; further ones are dropped."""
MOST_AT_ONCE, WITH_CONTENT, AS_A_TRIAL = 256, 32, 8
"""Spans per request, at most: without content, with content (collectors accept 4 MB), and in a first request."""
GATHER_SECONDS = 0.25
"""Seconds of debounce: spans that end within it are sent together."""
REQUEST_SECONDS = 10.0
"""Timeout of a request in seconds."""
TRIAL_SECONDS = 3.0
"""Timeout of the connection test in seconds."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds of backoff before a retry, doubled each time. `close` does not retry within the first one."""
LONGEST_RETRY_AFTER = 120.0
"""Maximum pause in seconds for a `Retry-After` header."""
SLOW = 0.3
"""Seconds above which a response is slow."""
LAST_WAIT, LEAST_WAIT = 1.0, 0.004
"""Seconds that `close` waits for the last spans: if the collector responds in time, and if it does not."""
SHARE = 0.003
"""Share of the time since the first span that `close` waits for a slow collector, if more than LEAST_WAIT."""


class SpanSender:
    """Sends ended spans to the collector `to`. `content`: messages and arguments are included."""

    def __init__(
        self,
        to: Endpoint,
        *,
        version: str,
        content: bool = False,
        reach: Callable[[Endpoint], Send] = open_collector,
        most: int = MOST_WAITING,
    ) -> None:
        self.dropped = 0
        """Spans that were not sent."""
        self.sent = 0
        self._to, self._version, self._content, self._reach, self._most = to, version, content, reach, most
        self._offered: deque[Span] = deque()
        self._waiting: deque[Span] = deque()
        self._some, self._enough, self._end = Event(), Event(), Event()
        """Signals for the thread: a first span, a full request, the end. Waking it for each span costs too much."""
        self._requested_at: float | None = None
        self._began = 0.0
        self._answers = self._slow = self._has_warned = self._closed = False
        self._counting = Lock()
        """Held while spans are counted: the thread may still send its last ones when `close` stops waiting."""
        self._retry_at = float("-inf")
        self._thread: Thread | None = None

    def offer(self, spans: Iterable[Span]) -> None:
        """Queue these spans. Must be called from one thread."""
        for span in spans:
            if len(self._offered) + len(self._waiting) >= self._most:
                self.dropped += 1
                continue
            self._offered.append(span)
            if not self._some.is_set():
                self._some.set()
            if len(self._offered) >= MOST_AT_ONCE:
                self._enough.set()
            if self._thread is None:
                self._began = monotonic()
                self._thread = Thread(target=self._work, name="daiku-otlp", daemon=True)
                self._thread.start()

    @property
    def address(self) -> str:
        """Address of the collector without parts that may be secret."""
        return self._to.display_address

    def test_connection(self) -> str:
        """Send a request without spans; return why the collector refused it, empty if it accepted."""
        try:
            self._reach(self._to)(b"", TRIAL_SECONDS)
        except NotSent as error:
            return str(error)
        return ""

    def close(self) -> None:
        """Send the rest within a second; a slow or unreachable collector gets much less."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._end.set()
        self._enough.set()
        self._some.set()
        start = monotonic()
        while thread.is_alive() and monotonic() - start < self._closing_seconds():
            thread.join(0.004)
        with self._counting:  # the rest is lost
            self.dropped += len(self._offered) + len(self._waiting)
            self._closed = True
        self._has_warned = True
        if self.dropped:
            logger.warning(
                "%d spans did not reach %s, %d did", self.dropped, self._to.display_address, self.sent
            )

    def _closing_seconds(self) -> float:
        """Return the seconds that `close` may take."""
        requested_at = self._requested_at
        if not self._slow and (requested_at is None or monotonic() - requested_at < SLOW):
            return LAST_WAIT
        return max(LEAST_WAIT, min(LAST_WAIT, SHARE * (monotonic() - self._began)))

    # -- in the thread --------------------------------------------------------------------

    def _work(self) -> None:
        try:
            send, pause, is_over = self._reach(self._to), FIRST_PAUSE, False
            while not is_over:
                is_over = self._gather()
                while self._waiting and not self._closed:
                    if is_over and monotonic() < self._retry_at:
                        return
                    if self._send(send):
                        pause = FIRST_PAUSE
                    elif is_over:
                        return
                    else:
                        is_over = self._back_off(max(pause, self._retry_at - monotonic()))
                        pause = min(pause * 2, LONGEST_PAUSE)
        except Exception:  # the thread's boundary: tracing must not end a run
            logger.exception("spans are no longer sent to %s", self._to.display_address)

    def _gather(self) -> bool:
        """Wait for spans and debounce; return True if these are the last."""
        self._some.wait()
        self._enough.wait(GATHER_SECONDS)
        return self._take()

    def _back_off(self, seconds: float) -> bool:
        """Back off before a retry while spans are queued; return True if the end came meanwhile."""
        self._end.wait(seconds)
        return self._take()

    def _take(self) -> bool:
        """Move the offered spans to the waiting ones; return True if no more will come."""
        is_over = self._end.is_set()
        if not is_over:
            self._some.clear()
            self._enough.clear()
        with self._counting:
            while self._offered:
                self._waiting.append(self._offered.popleft())
        return is_over

    def _send(self, send: Send) -> bool:
        """Send the oldest spans; return True if they need no retry."""
        batch_size = WITH_CONTENT if self._content else MOST_AT_ONCE
        batch = list(islice(self._waiting, batch_size if self._answers else AS_A_TRIAL))
        from daiku.trace.telemetry.otlp import encode_spans  # when used: 60 ms, in the thread that sends

        body = encode_spans(batch, version=self._version, content=self._content)
        self._requested_at = start = monotonic()
        try:
            send(body, REQUEST_SECONDS)
        except NotSent as error:
            self._answers, self._slow = False, True
            if not self._has_warned:  # once, and not after the end
                self._has_warned = True
                logger.warning(
                    "spans do not reach %s (%s); they are counted", self._to.display_address, error
                )
            if error.lasting:
                self._count(len(batch), sent=False)
            else:
                self._retry_at = monotonic() + max(FIRST_PAUSE, min(error.pause, LONGEST_RETRY_AFTER))
            return error.lasting
        finally:
            self._requested_at = None
        self._answers, self._slow = True, monotonic() - start > SLOW
        self._count(len(batch), sent=True)
        return True

    def _count(self, spans: int, *, sent: bool) -> None:
        """Count the oldest spans as sent or as dropped, unless `close` has counted them."""
        with self._counting:
            if self._closed:
                return
            if sent:
                self.sent += spans
            else:
                self.dropped += spans
            for _ in range(spans):
                self._waiting.popleft()
