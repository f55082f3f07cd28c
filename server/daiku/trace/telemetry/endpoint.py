"""The address of a collector: what is wrong with it, what it means, and the headers that go along."""

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
"""The usual variable for the headers that a collector wants, such as `authorization=Bearer%20…`."""
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A collector: the whole address to send to (of gRPC host and port), how, and with what headers."""

    target: str
    grpc: bool = False
    secure: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        return self.target.partition("?")[0]


def endpoint_problem(address: str) -> Text:
    """What is wrong with a collector's address; empty where nothing is."""
    try:
        parts = urlsplit(address)
        right = (
            parts.scheme in ("http", "https", "grpc", "grpcs") and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        right, parts = False, None
    if not right or parts is None:
        return text("trace.address", address=repr(address.rpartition("@")[2]))
    if parts.scheme.startswith("grpc") and importlib.util.find_spec("grpc") is None:
        return text("trace.no_grpc")
    return NO_TEXT


def parse_endpoint(address: str, headers: Mapping[str, str] = NOTHING) -> Endpoint:
    """Parse a collector's address (checked by `endpoint_problem`): default path, credentials as a header."""
    parts = urlsplit(address)
    place = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    if parts.port is not None:
        place += f":{parts.port}"
    given = {**_login(parts), **headers}
    if parts.scheme.startswith("grpc"):
        place = place if parts.port is not None else f"{place}:{GRPC_PORT}"
        return Endpoint(place, grpc=True, secure=parts.scheme == "grpcs", headers=given)
    path = parts.path if parts.path not in ("", "/") else PATH
    return Endpoint(urlunsplit((parts.scheme, place, path, parts.query, "")), headers=given)


def headers_of(value: str) -> Mapping[str, str]:
    """The headers of such a variable: `name=value` pairs between commas, URL-encoded."""
    pairs = (part.partition("=") for part in value.split(","))
    return {
        name.strip().lower(): unquote(given.strip()) for name, mark, given in pairs if mark and name.strip()
    }


def _login(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    both = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"authorization": f"Basic {base64.b64encode(both).decode('ascii')}"}
