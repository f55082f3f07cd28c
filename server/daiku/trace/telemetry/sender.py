"""Sends spans to a collector from a thread of its own, and drops them where that does not keep up."""

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
TRY_LATER = frozenset((408, 425, 429, 500, 502, 503, 504))
MOST_ANSWERED = 65_536

Send = Callable[[bytes, float], None]
"""Sends one request within so many seconds. Raises NotSent."""


class NotSent(Exception):
    """The collector did not take the spans. `lasting`: it will not take them later either. `pause`: seconds for which it
    asks not to be called."""

    def __init__(self, why: str, *, lasting: bool = False, pause: float = 0.0) -> None:
        super().__init__(why)
        self.lasting = lasting
        self.pause = pause


def open_collector(to: Endpoint) -> Send:
    """The way to a collector. What it needs is loaded here: call it in the thread that sends."""
    return _over_grpc(to) if to.grpc else _over_http(to)


def _over_http(to: Endpoint) -> Send:
    # Loaded in the thread that sends: most processes send nothing.
    import http.client
    import urllib.error
    import urllib.request

    from daiku.texts.rules.retryafter import retry_after  # likewise: it reads dates as mail does

    headers = {"content-type": "application/x-protobuf", "user-agent": "daiku", **to.headers}

    def send(body: bytes, seconds: float) -> None:
        request = urllib.request.Request(to.target, body, headers, method="POST")  # noqa: S310  # http(s) only, checked
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  # likewise
                answer.read(MOST_ANSWERED)
        except urllib.error.HTTPError as error:
            with error:
                asked = {name.lower(): value for name, value in error.headers.items()}
                lasting, pause = error.code not in TRY_LATER, retry_after(asked, datetime.now(UTC)) or 0.0
                raise NotSent(f"HTTP {error.code}", lasting=lasting, pause=pause) from error
        except urllib.error.URLError as error:
            raise NotSent(str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(str(error) or type(error).__name__) from error

    return send


def _over_grpc(to: Endpoint) -> Send:
    import grpc  # an optional extra, and 40 ms: only where spans go over gRPC

    options = (("grpc.enable_retries", 0), ("grpc.primary_user_agent", "daiku"))
    channel = (
        grpc.secure_channel(to.target, grpc.ssl_channel_credentials(), options)
        if to.secure
        else grpc.insecure_channel(to.target, options)
    )
    # Bytes in, bytes out: the message is encoded already.
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
"""Spans that wait to be sent; of more the oldest are dropped."""
MOST_AT_ONCE, WITH_CONTENT, AS_A_TRIAL = 256, 32, 8
"""Spans of one request; with content (collectors take 4 MB); of the first one, and after a failure."""
GATHER_SECONDS = 0.25
"""Spans that end within this time travel together."""
REQUEST_SECONDS = 10.0
TRIAL_SECONDS = 3.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds until a retry, doubled each time. At the end there is no retry within the first pause."""
LONGEST_RETRY_AFTER = 120.0
"""Maximum seconds without a request, whatever `Retry-After` says."""
SLOW = 0.3
"""Seconds above which an answer is slow."""
LAST_WAIT, LEAST_WAIT = 1.0, 0.004
"""Seconds that the last spans are given at the end, where the collector answers in time, and where it does not."""
SHARE = 0.003
"""Of the time since the first span, so much is waited at the end for a slow collector, where that is more."""


class SpanSender:
    """Sends ended spans to `to`: `offer` never waits. `content`: what was said and done goes along."""

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
        """Spans that the collector never got."""
        self.sent = 0
        self._to, self._version, self._content, self._reach, self._most = to, version, content, reach, most
        self._offered: deque[Span] = deque()
        self._waiting: deque[Span] = deque()
        self._some, self._enough, self._end = Event(), Event(), Event()
        """What the thread waits for: a first span, a full request, the end. Waking it for each span costs too much."""
        self._asked_since: float | None = None
        self._began = 0.0
        self._answers = self._slow = self._told = self._closed = False
        self._counting = Lock()
        """Held while spans are counted: the thread may be at its last ones when the end has waited long enough."""
        self._retry_at = float("-inf")
        self._thread: Thread | None = None

    def offer(self, spans: Iterable[Span]) -> None:
        """Let these be sent. To be called from one thread."""
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
        """Where the spans go, without what may be secret in it."""
        return self._to.shown

    def try_out(self) -> str:
        """Send a request without spans; why the collector did not take it, empty where it did."""
        try:
            self._reach(self._to)(b"", TRIAL_SECONDS)
        except NotSent as error:
            return str(error)
        return ""

    def close(self) -> None:
        """Send what is left, and wait for it a second at most; hardly at all for a collector that is slow or gone."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._end.set()
        self._enough.set()
        self._some.set()
        began = monotonic()
        while thread.is_alive() and monotonic() - began < self._patience():
            thread.join(0.004)
        with self._counting:  # what is left now is lost
            self.dropped += len(self._offered) + len(self._waiting)
            self._closed = True
        self._told = True
        if self.dropped:
            logger.warning("%d spans did not reach %s, %d did", self.dropped, self._to.shown, self.sent)

    def _patience(self) -> float:
        """Seconds that the end may take."""
        asked = self._asked_since
        if not self._slow and (asked is None or monotonic() - asked < SLOW):
            return LAST_WAIT
        return max(LEAST_WAIT, min(LAST_WAIT, SHARE * (monotonic() - self._began)))

    # -- in the thread --------------------------------------------------------------------

    def _work(self) -> None:
        try:
            send, pause, over = self._reach(self._to), FIRST_PAUSE, False
            while not over:
                over = self._gather()
                while self._waiting and not self._closed:
                    if over and monotonic() < self._retry_at:
                        return
                    if self._send(send):
                        pause = FIRST_PAUSE
                    elif over:
                        return
                    else:
                        over = self._rest(max(pause, self._retry_at - monotonic()))
                        pause = min(pause * 2, LONGEST_PAUSE)
        except Exception:  # the thread's boundary: tracing never takes a run along
            logger.exception("spans are no longer sent to %s", self._to.shown)

    def _gather(self) -> bool:
        """Wait for spans, and for others that end soon after the first; whether these are the last."""
        self._some.wait()
        self._enough.wait(GATHER_SECONDS)
        return self._take()

    def _rest(self, seconds: float) -> bool:
        """Pause before the collector is tried again, while spans go on gathering; whether the end came meanwhile."""
        self._end.wait(seconds)
        return self._take()

    def _take(self) -> bool:
        """Take over what was offered; whether nothing comes any more."""
        over = self._end.is_set()
        if not over:
            self._some.clear()
            self._enough.clear()
        with self._counting:
            while self._offered:
                self._waiting.append(self._offered.popleft())
        return over

    def _send(self, send: Send) -> bool:
        """Send the oldest spans; whether the collector is done with them."""
        usual = WITH_CONTENT if self._content else MOST_AT_ONCE
        batch = list(islice(self._waiting, usual if self._answers else AS_A_TRIAL))
        from daiku.trace.telemetry.otlp import encode_spans  # when used: 60 ms, in the thread that sends

        body = encode_spans(batch, version=self._version, content=self._content)
        self._asked_since = began = monotonic()
        try:
            send(body, REQUEST_SECONDS)
        except NotSent as error:
            self._answers, self._slow = False, True
            if not self._told:  # once; not after the end either
                self._told = True
                logger.warning("spans do not reach %s (%s); they are counted", self._to.shown, error)
            if error.lasting:
                self._count(len(batch), sent=False)
            else:
                self._retry_at = monotonic() + max(FIRST_PAUSE, min(error.pause, LONGEST_RETRY_AFTER))
            return error.lasting
        finally:
            self._asked_since = None
        self._answers, self._slow = True, monotonic() - began > SLOW
        self._count(len(batch), sent=True)
        return True

    def _count(self, spans: int, *, sent: bool) -> None:
        """Count the oldest spans as sent or as dropped, unless the end has counted them already."""
        with self._counting:
            if self._closed:
                return
            if sent:
                self.sent += spans
            else:
                self.dropped += spans
            for _ in range(spans):
                self._waiting.popleft()
