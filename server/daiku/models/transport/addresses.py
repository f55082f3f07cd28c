"""Base URLs of model services, completed from user input and joined with paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

_OLLAMA_PORT = 11434
_METHOD_PATH = re.compile(r"/(?:chat/completions|responses|models)$")


def join_url(base: str, path: str) -> str:
    """Return the URL of `path` below `base`. Queries of both are kept, a fragment is dropped."""
    parts = urlsplit(base)
    path_part, _, query = path.partition("?")
    queries = "&".join(query_part for query_part in (query, parts.query) if query_part)
    joined_path = f"{parts.path.rstrip('/')}/{path_part.lstrip('/')}"
    return parts._replace(path=joined_path, query=queries, fragment="").geturl()


def strip_version(base: str) -> str:
    """Return `base` without a `/v1` at the end of its path."""
    parts = urlsplit(base)
    return parts._replace(path=parts.path.removesuffix("/v1")).geturl()


def strip_credentials(address: str) -> str:
    """Return the address without credentials and query, for messages."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _split_address(url: str) -> SplitResult | None:
    """Return the parts of an address from user input; None if it is not an address."""
    stripped = url.strip()
    try:
        parts = urlsplit(stripped if "://" in stripped else f"http://{stripped}")
        _ = parts.port
    except ValueError:
        return None
    return parts._replace(path=parts.path.rstrip("/"), fragment="")


def base_url_normalizer(address: str) -> Callable[[str], str]:
    """Return a function that strips the trailing slash of a base URL and uses `address` for ""."""

    def normalize(url: str) -> str:
        parts = _split_address(url.strip() or address)
        return parts.geturl() if parts is not None else url.strip()

    return normalize


def openai_url_normalizer(default: str = "") -> Callable[[str], str]:
    """Return a function that completes a base URL for OpenAI's SDK: adds a scheme and `/v1`, drops method paths."""

    def complete(url: str) -> str:
        address = url.strip() or default
        parts = _split_address(address) if address else None
        if parts is None:
            return address
        path = _METHOD_PATH.sub("", parts.path)
        return parts._replace(path=path or "/v1").geturl()

    return complete


def normalize_anthropic_address(url: str) -> str:
    """Return Anthropic's base URL without `/v1`, which its paths begin with."""
    return strip_version(base_url_normalizer("https://api.anthropic.com")(url))


def normalize_ollama_address(url: str) -> str:
    """Return the server URL for any form of `base_url`; the default server for ""."""
    parts = _split_address(url)
    if parts is None:
        return url.strip()
    port = parts.port or (None if "://" in url else _OLLAMA_PORT)
    path = re.sub(r"/(v1|api)$", "", parts.path)
    return parts._replace(netloc=_build_netloc(parts, port), path=path).geturl()


def parse_ollama_host(url: str) -> str:
    """Return the URL for OLLAMA_HOST: a host, `:port`, or a bind address; unchanged if it is none of these."""
    parts = _split_address(url)
    if parts is None:
        return url if "://" in url else f"http://{url}"
    port = parts.port or (443 if parts.scheme == "https" else _OLLAMA_PORT)
    return parts._replace(netloc=_build_netloc(parts, port)).geturl()


def _build_netloc(parts: SplitResult, port: int | None) -> str:
    host = parts.hostname
    if host in (None, "", "0.0.0.0", "::"):  # noqa: S104  # bind address, not a host to connect to
        host = "127.0.0.1"
    credentials, at, _ = parts.netloc.rpartition("@")
    return f"{credentials}{at}{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
