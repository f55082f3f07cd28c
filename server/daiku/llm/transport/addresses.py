"""Addresses of model services completed from what people write: scheme, port, path."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

_OLLAMA_PORT = 11434


def normalized_base_url(address: str) -> Callable[[str], str]:
    """Return a function that strips a base URL's trailing slash and uses `address` if it is empty."""
    return lambda given: (given.strip() or address).rstrip("/")


def openai_base_url(default: str = "") -> Callable[[str], str]:
    """Return a function that completes a base URL for OpenAI's SDK: a scheme, `/v1`, no method path."""

    def whole(given: str) -> str:
        address = (given.strip() or default).rstrip("/")
        if address and "://" not in address:
            address = f"http://{address}"
        for tail in ("/chat/completions", "/responses", "/models"):
            address = address.removesuffix(tail)
        scheme, _, rest = address.partition("://")
        return f"{scheme}://{rest}/v1" if rest and "/" not in rest else address

    return whole


def anthropic_address(given: str) -> str:
    """Normalize Anthropic's base URL: without `/v1`, which the SDK adds."""
    return normalized_base_url("https://api.anthropic.com")(given).removesuffix("/v1")


def ollama_address(given: str) -> str:
    """The server as http(s)://host:port from any form of a `base_url`, the usual one where it is empty."""
    text = given.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    port = parts.port or (None if "://" in text else _OLLAMA_PORT)
    path = re.sub(r"/(v1|api)$", "", parts.path.rstrip("/"))
    return f"{parts.scheme}://{_asked_host(parts.hostname)}{f':{port}' if port else ''}{path}"


def ollama_host(given: str) -> str:
    """The address that OLLAMA_HOST names: a host, `:port`, or where a server listens; itself where it is none."""
    text = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(text)
        port = parts.port or (443 if parts.scheme == "https" else _OLLAMA_PORT)
    except ValueError:
        return text
    return f"{parts.scheme}://{_asked_host(parts.hostname)}:{port}{parts.path.rstrip('/')}"


def _asked_host(host: str | None) -> str:
    if host in (None, "", "0.0.0.0", "::"):  # noqa: S104  # where a server listens is not where one asks
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
