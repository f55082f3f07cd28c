"""One request to a collector, over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from daiku.trace.telemetry.endpoint import Endpoint

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
TRY_LATER = frozenset((408, 425, 429, 500, 502, 503, 504))
MOST_ANSWERED = 65_536

Send = Callable[[bytes, float], None]
"""Sends one request within so many seconds. Raises NotSent."""


class NotSent(Exception):
    """The collector did not take the spans. `lasting`: it will not take them later either."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


def open_collector(to: Endpoint) -> Send:
    """The way to a collector. What it needs is loaded here: call it in the thread that sends."""
    return _over_grpc(to) if to.grpc else _over_http(to)


def _over_http(to: Endpoint) -> Send:
    # Loaded in the thread that sends: most processes send nothing.
    import http.client
    import urllib.error
    import urllib.request

    headers = {"content-type": "application/x-protobuf", "user-agent": "daiku", **to.headers}

    def send(body: bytes, seconds: float) -> None:
        request = urllib.request.Request(to.target, body, headers, method="POST")  # noqa: S310  # http(s) only, checked
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  # likewise
                answer.read(MOST_ANSWERED)
        except urllib.error.HTTPError as error:
            with error:
                raise NotSent(f"HTTP {error.code}", lasting=error.code not in TRY_LATER) from error
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
