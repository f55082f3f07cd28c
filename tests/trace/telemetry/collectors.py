"""Collectors of this machine for tests: over HTTP and gRPC, answering, refusing, or never answering."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1 import trace_pb2

Values = dict[str, str | int | float | bool]


@dataclass(slots=True)
class Collected:
    """What a collector got: its spans, and path and headers of each request."""

    address: str = ""
    spans: list[trace_pb2.Span] = field(default_factory=list[trace_pb2.Span])
    paths: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    statuses: list[int] = field(default_factory=list[int])
    """Answers to give before those with 200."""
    refusal_headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of these responses."""
    times: list[float] = field(default_factory=list[float])
    """Time of each HTTP request in seconds."""
    changed: Condition = field(default_factory=Condition)

    def take(self, request: ExportTraceServiceRequest, path: str, headers: dict[str, str]) -> None:
        with self.changed:
            self.spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
            self.paths.append(path)
            self.headers.append(headers)
            self.changed.notify_all()

    def wait(self, spans: int, seconds: float = 10) -> list[trace_pb2.Span]:
        """The spans, once there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.spans) >= spans, seconds), (
                f"{len(self.spans)} spans"
            )
        return self.spans

    def by_name(self) -> dict[str, Values]:
        return {span.name: values(span) for span in self.spans}


def values(span: trace_pb2.Span) -> Values:
    found: Values = {}
    for each in span.attributes:
        found[each.key] = getattr(each.value, str(each.value.WhichOneof("value")))
    return found


@contextmanager
def http_collector(*statuses: int, **refusal_headers: str) -> Generator[Collected]:
    """Run a collector over HTTP that first responds with `statuses` and these headers."""
    names = {name.replace("_", "-"): value for name, value in refusal_headers.items()}
    got = Collected(statuses=list(statuses), refusal_headers=names)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.times.append(time.monotonic())
            status = got.statuses.pop(0) if got.statuses else 200
            if status == 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                got.take(ExportTraceServiceRequest.FromString(body), self.path, headers)
            self.send_response(status)
            for name, value in got.refusal_headers.items() if status != 200 else ():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    got.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_collector() -> Generator[Collected]:
    """A collector over gRPC."""
    got = Collected()

    class Servicer(TraceServiceServicer):
        def Export(  # noqa: N802  # gRPC's name
            self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
        ) -> ExportTraceServiceResponse:
            headers = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
            got.take(request, "", headers)
            return ExportTraceServiceResponse()

    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        add_TraceServiceServicer_to_server(Servicer(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        got.address = f"grpc://127.0.0.1:{port}"
        try:
            yield got
        finally:
            server.stop(0).wait()


@contextmanager
def silent_collector() -> Generator[str]:
    """The address of one that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def dead_address(scheme: str = "http") -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
