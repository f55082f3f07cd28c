"""Shared code of PostgreSQL connections: loading psycopg, URL checks, and errors without passwords."""

from __future__ import annotations

import importlib
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.texts.text import Text, text

CONNECT_SECONDS = 10
_PASSWORD = re.compile(r"(?<=:)[^:@/\s]+(?=@)|(?<=password=)\S+")
_MASKABLE = re.compile(r"[a-z]+://(?:[^@/?#\s]*@)?[^@/?#\s]*(?:/[^@?#\s]*)?(?:\?\S*)?")
"""A database URL whose credentials can be masked."""


def load_psycopg() -> Any:
    """Import psycopg, only when a database is opened. Raises UsageError without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as wrong:
        raise UsageError(
            Failure(kind="usage", message=text("store.no_psycopg"), hint=text("store.install_postgres"))
        ) from wrong


def check_address(url: str) -> None:
    """Raise UsageError if an unencoded character ends the password early, so that it could be shown."""
    try:
        urlsplit(url)
        match = _MASKABLE.fullmatch(url)
    except ValueError:  # unbalanced bracket
        match = None
    if match is None:
        raise UsageError(
            Failure(kind="usage", message=text("store.wrong_url"), hint=text("store.encode_password"))
        )


def get_host(url: str) -> str:
    """Return the server in `url` without credentials, for messages."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'localhost'}{port}{parts.path}"


def find_passwords(url: str) -> list[str]:
    """Return the passwords in a URL, encoded and decoded."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0].partition(":")[2]
    parameters = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword")]
    return [each for each in {login, unquote(login), *parameters} if each]


def build_connection_error(url: str, wrong: Exception) -> UsageError:
    """Return the error of a failed connection."""
    message = text("store.no_postgres", host=get_host(url), why=_format_error(url, wrong))
    return UsageError(Failure(kind="usage", message=message, hint=text("store.check_url"), retryable=True))


def build_statement_error(url: str, wrong: Exception) -> DaikuError:
    """Return the error of a failed statement or a lost connection."""
    message = text("store.postgres_failed", host=get_host(url), why=_format_error(url, wrong))
    return DaikuError(Failure(kind="internal", message=message, hint=text("store.check_url")))


def _format_error(url: str, wrong: Exception) -> Text:
    """Return the error message in one line, without passwords."""
    if isinstance(wrong, TimeoutError):
        return text("store.no_answer", seconds=CONNECT_SECONDS)
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    message = lines[0] if lines else type(wrong).__name__
    for password in find_passwords(url):
        message = message.replace(password, "***")
    return Text(_PASSWORD.sub("***", message)[:300].rstrip("."))
