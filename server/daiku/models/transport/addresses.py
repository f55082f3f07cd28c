"""Addresses of model services completed from what people write, and joined with paths as URLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

_OLLAMA_PORT = 11434
_METHOD = re.compile(r"/(?:chat/completions|responses|models)$")


def join_url(base: str, path: str) -> str:
    """Return the URL of `path` below `base`. Queries of both are kept, a fragment is dropped."""
    parts = urlsplit(base)
    place, _, query = path.partition("?")
    queries = "&".join(each for each in (query, parts.query) if each)
    whole = f"{parts.path.rstrip('/')}/{place.lstrip('/')}"
    return parts._replace(path=whole, query=queries, fragment="").geturl()


def strip_version(base: str) -> str:
    """Return `base` without a `/v1` at the end of its path."""
    parts = urlsplit(base)
    return parts._replace(path=parts.path.removesuffix("/v1")).geturl()


def public_address(address: str) -> str:
    """Return the address without credentials and query, as messages show it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address that people wrote; None if it is not an address."""
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        _ = parts.port
    except ValueError:
        return None
    return parts._replace(path=parts.path.rstrip("/"), fragment="")


def normalized_base_url(address: str) -> Callable[[str], str]:
    """Return a function that strips a base URL's trailing slash and uses `address` if it is empty."""

    def normalize(url: str) -> str:
        parts = _split(url.strip() or address)
        return parts.geturl() if parts is not None else url.strip()

    return normalize


def openai_base_url(default: str = "") -> Callable[[str], str]:
    """Return a function that completes a base URL for OpenAI's SDK: a scheme, `/v1`, no method path."""

    def complete(url: str) -> str:
        address = url.strip() or default
        parts = _split(address) if address else None
        if parts is None:
            return address
        path = _METHOD.sub("", parts.path)
        return parts._replace(path=path or "/v1").geturl()

    return complete


def anthropic_address(url: str) -> str:
    """Normalize Anthropic's base URL: without `/v1`, which its paths begin with."""
    return strip_version(normalized_base_url("https://api.anthropic.com")(url))


def ollama_address(url: str) -> str:
    """Return the server as a URL from any form of a `base_url`, the usual one where it is empty."""
    parts = _split(url)
    if parts is None:
        return url.strip()
    port = parts.port or (None if "://" in url else _OLLAMA_PORT)
    path = re.sub(r"/(v1|api)$", "", parts.path)
    return parts._replace(netloc=_netloc(parts, port), path=path).geturl()


def ollama_host(url: str) -> str:
    """The address that OLLAMA_HOST names: a host, `:port`, or where a server listens; itself where it is none."""
    parts = _split(url)
    if parts is None:
        return url if "://" in url else f"http://{url}"
    port = parts.port or (443 if parts.scheme == "https" else _OLLAMA_PORT)
    return parts._replace(netloc=_netloc(parts, port)).geturl()


def _netloc(parts: SplitResult, port: int | None) -> str:
    host = parts.hostname
    if host in (None, "", "0.0.0.0", "::"):  # noqa: S104  # where a server listens is not where one asks
        host = "127.0.0.1"
    credentials, at, _ = parts.netloc.rpartition("@")
    return f"{credentials}{at}{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
