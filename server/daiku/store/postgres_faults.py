"""What both connections to PostgreSQL share: the library, the check of an address, failures without a password."""

from __future__ import annotations

import importlib
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.texts.text import Text, text

CONNECT_SECONDS = 10
_PASSWORD = re.compile(r"(?<=:)[^:@/\s]+(?=@)|(?<=password=)\S+")
_PLAIN = re.compile(r"[a-z]+://(?:[^@/?#\s]*@)?[^@/?#\s]*(?:/[^@?#\s]*)?(?:\?\S*)?")
"""An address in which whatever stands in a login can be told from the rest."""


def library() -> Any:
    """psycopg, which is loaded when a database is opened: nobody else waits for it. Raises UsageError without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as wrong:
        raise UsageError(
            Failure(kind="usage", message=text("store.no_psycopg"), hint=text("store.install_postgres"))
        ) from wrong


def check_address(url: str) -> None:
    """Raise UsageError if a character ends the password too early: parts of it would be shown as a host name."""
    try:
        urlsplit(url)
        plain = _PLAIN.fullmatch(url)
    except ValueError:  # a bracket that is not closed
        plain = None
    if plain is None:
        raise UsageError(
            Failure(kind="usage", message=text("store.wrong_url"), hint=text("store.encode_password"))
        )


def host_of(url: str) -> str:
    """The server that `url` names, without login: fit for a message."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'localhost'}{port}{parts.path}"


def passwords_of(url: str) -> list[str]:
    """The passwords in an address, as they are written and as they are meant."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0].partition(":")[2]
    asked = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword")]
    return [each for each in {login, unquote(login), *asked} if each]


def unreachable(url: str, wrong: Exception) -> UsageError:
    """No connection could be made."""
    message = text("store.no_postgres", host=host_of(url), why=_words(url, wrong))
    return UsageError(Failure(kind="usage", message=message, hint=text("store.check_url"), retryable=True))


def fault(url: str, wrong: Exception) -> DaikuError:
    """The server refused a statement, or went away."""
    message = text("store.postgres_failed", host=host_of(url), why=_words(url, wrong))
    return DaikuError(Failure(kind="internal", message=message, hint=text("store.check_url")))


def _words(url: str, wrong: Exception) -> Text:
    """What the server or the library said, in one line, without a password."""
    if isinstance(wrong, TimeoutError):
        return text("store.no_answer", seconds=CONNECT_SECONDS)
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    said = lines[0] if lines else type(wrong).__name__
    for password in passwords_of(url):
        said = said.replace(password, "***")
    return Text(_PASSWORD.sub("***", said)[:300].rstrip("."))
