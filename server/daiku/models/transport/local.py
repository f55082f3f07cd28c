"""The model that a server answers with when none is named: one short blocking request, without an HTTP client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.models.transport.addresses import join_url, strip_version

PATIENCE = 0.5
"""Seconds: on this machine a server answers in milliseconds or is not there at all."""

LOADED_MODEL = "default"
"""Name for the only model of a server that is still loading it; such servers ignore the name."""
_LOADING: JsonObject = {}
"""Placeholder for the answer of a server that is loading its model."""


def first_of_ollama(address: str, headers: Mapping[str, str]) -> str | None:
    """The first model of an Ollama server; None where it is not there or has none. Blocks for at most about a
    second, as those below do."""
    return _first(_get(address, "/api/tags", headers), "models", ("model", "name"))


def first_of_lmstudio(address: str, headers: Mapping[str, str]) -> str | None:
    """The model that LM Studio has loaded, else its first."""
    listed = _get(strip_version(address), "/api/v0/models", headers)
    return _first(listed, "data", ("id",)) or first_of_openai(address, headers)


def first_of_openai(address: str, headers: Mapping[str, str]) -> str | None:
    """Return the first model of a server that speaks OpenAI's protocol; while it loads one, a name for that."""
    listed = _get(address, "/models", headers)
    return LOADED_MODEL if listed is _LOADING else _first(listed, "data", ("id",))


def has_no_tools(address: str, headers: Mapping[str, str]) -> bool:
    """Return True if a llama.cpp server says that the chat template of its model has no tools."""
    properties = _get(strip_version(address), "/props", headers)
    caps = properties.get("chat_template_caps") if isinstance(properties, dict) else None
    return isinstance(caps, dict) and caps.get("supports_tools") is False


def _first(document: JsonValue, key: str, names: tuple[str, ...]) -> str | None:
    listed = document.get(key) if isinstance(document, dict) else None
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    talking = [entry for entry in entries if not _embeds(entry)]
    talking.sort(key=lambda entry: entry.get("state") not in {"loaded", None})
    found = (entry.get(name) for entry in talking for name in names)
    return next((name for name in found if isinstance(name, str) and name), None)


def _embeds(entry: JsonObject) -> bool:
    return entry.get("type") == "embeddings" or any(
        "embed" in str(entry.get(key, "")).lower() for key in ("id", "model", "name")
    )


def _get(address: str, path: str, headers: Mapping[str, str]) -> JsonValue:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # when used

    try:
        parts = urlsplit(join_url(address, path))
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=PATIENCE)
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
