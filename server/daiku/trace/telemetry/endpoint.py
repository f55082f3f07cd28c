"""Address of an OTLP collector: validation, default path, and headers."""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from daiku.dataclass import dataclass, field
from daiku.texts.text import NO_TEXT, Text, text

PATH = "/v1/traces"
GRPC_PORT = 4317
OTLP_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""Standard variable for headers of a collector, such as `authorization=Bearer%20…`."""
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A collector: its address (for gRPC: host and port), protocol, and headers."""

    target: str
    grpc: bool = False
    secure: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @property
    def display_address(self) -> str:
        """Address without parts that may be secret."""
        return self.target.partition("?")[0]


def endpoint_problem(address: str) -> Text:
    """Return what is wrong with a collector's address; empty if it is valid."""
    try:
        parts = urlsplit(address)
        is_valid = (
            parts.scheme in ("http", "https", "grpc", "grpcs") and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        is_valid, parts = False, None
    if not is_valid or parts is None:
        return text("trace.address", address=repr(address.rpartition("@")[2]))
    if parts.scheme.startswith("grpc") and importlib.util.find_spec("grpc") is None:
        return text("trace.no_grpc")
    return NO_TEXT


def parse_endpoint(address: str, headers: Mapping[str, str] = NOTHING) -> Endpoint:
    """Parse a collector's address (validated by `endpoint_problem`); credentials become a header."""
    parts = urlsplit(address)
    place = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    if parts.port is not None:
        place += f":{parts.port}"
    all_headers = {**_auth_headers(parts), **headers}
    if parts.scheme.startswith("grpc"):
        place = place if parts.port is not None else f"{place}:{GRPC_PORT}"
        return Endpoint(place, grpc=True, secure=parts.scheme == "grpcs", headers=all_headers)
    path = parts.path if parts.path not in ("", "/") else PATH
    return Endpoint(urlunsplit((parts.scheme, place, path, parts.query, "")), headers=all_headers)


def parse_headers(value: str) -> Mapping[str, str]:
    """Parse the headers of a variable: comma-separated `name=value` pairs, URL-encoded."""
    pairs = (part.partition("=") for part in value.split(","))
    return {
        name.strip().lower(): unquote(value_part.strip())
        for name, equals, value_part in pairs
        if equals and name.strip()
    }


def _auth_headers(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"authorization": f"Basic {base64.b64encode(credentials).decode('ascii')}"}
