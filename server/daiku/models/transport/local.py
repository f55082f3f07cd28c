"""Default model of a local server, from one short blocking request without an HTTP client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.models.transport.addresses import join_url, strip_version

TIMEOUT_SECONDS = 0.5
"""Timeout in seconds. A local server answers within milliseconds or is not running."""

LOADED_MODEL = "default"
"""Placeholder name for the only model of a server that is still loading it; such servers ignore the name."""
_LOADING: JsonObject = {}
"""Placeholder for the answer of a server that is loading its model."""


def find_ollama_model(address: str, headers: Mapping[str, str]) -> str | None:
    """Return the first model of an Ollama server; None if it is not running or has none.

    Blocks for at most about a second, like the functions below.
    """
    return _find_first(_get_json(address, "/api/tags", headers), "models", ("model", "name"))


def find_lmstudio_model(address: str, headers: Mapping[str, str]) -> str | None:
    """Return the model that LM Studio has loaded, else its first."""
    listed = _get_json(strip_version(address), "/api/v0/models", headers)
    return _find_first(listed, "data", ("id",)) or find_openai_model(address, headers)


def find_openai_model(address: str, headers: Mapping[str, str]) -> str | None:
    """Return the first model of a server that speaks OpenAI's protocol; a placeholder while it loads one."""
    listed = _get_json(address, "/models", headers)
    return LOADED_MODEL if listed is _LOADING else _find_first(listed, "data", ("id",))


def has_no_tools(address: str, headers: Mapping[str, str]) -> bool:
    """Return True if a llama.cpp server reports that its model's chat template has no tools."""
    properties = _get_json(strip_version(address), "/props", headers)
    caps = properties.get("chat_template_caps") if isinstance(properties, dict) else None
    return isinstance(caps, dict) and caps.get("supports_tools") is False


def _find_first(document: JsonValue, key: str, names: tuple[str, ...]) -> str | None:
    items = document.get(key) if isinstance(document, dict) else None
    entries = [entry for entry in items if isinstance(entry, dict)] if isinstance(items, list) else []
    chat_models = [entry for entry in entries if not _is_embedding_model(entry)]
    chat_models.sort(key=lambda entry: entry.get("state") not in {"loaded", None})
    values = (entry.get(name) for entry in chat_models for name in names)
    return next((name for name in values if isinstance(name, str) and name), None)


def _is_embedding_model(entry: JsonObject) -> bool:
    return entry.get("type") == "embeddings" or any(
        "embed" in str(entry.get(key, "")).lower() for key in ("id", "model", "name")
    )


def _get_json(address: str, path: str, headers: Mapping[str, str]) -> JsonValue:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # when used

    try:
        parts = urlsplit(join_url(address, path))
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", parts._replace(scheme="", netloc="").geturl(), headers=dict(headers))
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            from daiku.models.transport.vendor_errors import is_loading  # when used

            return _LOADING if is_loading(response.status, body.decode("utf-8", "replace")) else None
        return cast("JsonValue", json.loads(body))
    except (OSError, HTTPException, ValueError):
        return None
