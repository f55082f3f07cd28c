"""One HTTP request to a forge: its answer, refusals as values, and the pauses that the forge requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import httpx2
from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.items.source import REFUSALS, Shape, build_refusal, is_forge_error, parse_one
from daiku.texts.text import text

Method: TypeAlias = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
READ_SECONDS = 30.0
"""Timeout of a read in seconds."""
CHANGE_SECONDS = 65.0
"""Timeout of a change in seconds. GitLab gives up after 60, so a change without an answer is not done later."""
LIMITED_SECONDS = 60.0
"""Seconds to wait if a forge limits requests without saying for how long."""
LONGEST_PAUSE = 3600.0
"""Maximum pause in seconds, whatever the forge requests."""
MAX_CONCURRENT = 4
"""Maximum number of concurrent requests."""
_LONGEST_REASON = 300
"""Maximum characters of a forge's reason."""
_LONGEST_LOG = 50_000_000
"""Maximum bytes of a log that are read to find its end."""


@dataclass(frozen=True, slots=True)
class ForgeAnswer:
    """An HTTP answer.

    `more`: query of the next page; empty if there is none, None if unknown. `time`: the forge's clock.
    """

    status: int
    data: JsonValue
    more: str | None = None
    etag: str = ""
    time: str = ""


class _Problem(Shape):
    """The body of an error of either forge."""

    message: JsonValue = None
    error: JsonValue = None
    errors: JsonValue = None


class Wire:
    """Sends requests to the forge `name`.

    Nothing is sent during a requested pause; redirects are not followed.
    """

    def __init__(
        self,
        name: str,
        api_url: str,
        client: httpx2.AsyncClient | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.api_url = api_url.rstrip("/")
        self._name = name
        self._client = client or httpx2.AsyncClient(follow_redirects=False)
        self._clock = clock
        self._paused_until = 0.0
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def call(
        self,
        method: Method,
        url: str,
        headers: Mapping[str, str],
        data: JsonValue = None,
        *,
        secret: str = "",
        tail: int = 0,
    ) -> ForgeAnswer | ForgeRefusal:
        """Send one request, once. `secret` is removed from a refusal's text.

        `tail`: the answer is a text, of which the last `tail` characters are returned.
        """
        body = b"" if data is None else json.dumps(data).encode()
        request_headers = {"user-agent": "daiku", **headers} | (
            {"content-type": "application/json"} if body else {}
        )
        timeout = READ_SECONDS if method == "GET" else CHANGE_SECONDS
        async with self._slots:
            if (wait := self._paused_until - self._clock()) > 0:
                return self._build_limited(wait)
            try:
                async with self._client.stream(
                    method, url, headers=request_headers, content=body, timeout=timeout
                ) as response:
                    if tail and response.is_success:
                        return ForgeAnswer(response.status_code, await _read_end(response, tail))
                    await response.aread()
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, UnicodeError) as error:
                return self._build_unreachable(type(error).__name__)
        return self._read(response, secret)

    async def aclose(self) -> None:
        await self._client.aclose()

    def build_unreadable(self) -> ForgeRefusal:
        return build_refusal("unreadable", text("forge.unreadable", forge=self._name, url=self.api_url))

    def _read(self, response: httpx2.Response, secret: str) -> ForgeAnswer | ForgeRefusal:
        status = response.status_code
        if status == 304:
            return ForgeAnswer(status, None, time=_read_time(response))
        if status in {403, 429, 503} and (wait := self._read_pause(response)) is not None:
            self._paused_until = max(self._paused_until, self._clock() + wait)
            return self._build_limited(wait)
        try:
            data: JsonValue = json.loads(response.content) if response.content.strip() else None
        except (ValueError, RecursionError):
            data = None
            if response.is_success:
                return self.build_unreadable()
        if response.is_success:
            return ForgeAnswer(
                status,
                data,
                _find_next_page(response),
                response.headers.get("etag", ""),
                _read_time(response),
            )
        reason = _read_reason(data, secret)
        if status >= 500 or status == 408:
            return self._build_unreachable(f"{status} {reason}".strip())
        if status >= 400 and not is_forge_error(response.content):
            return self.build_unreadable()
        message = text("forge.refused", forge=self._name, status=status, why=reason)
        return build_refusal(REFUSALS.get(status, "bad"), message)

    def _read_pause(self, response: httpx2.Response) -> float | None:
        """Return the seconds of a requested pause; None if the refusal has another reason."""
        headers = response.headers
        remaining, reset = (
            headers.get(f"x-ratelimit-{part}") or headers.get(f"ratelimit-{part}", "")
            for part in ("remaining", "reset")
        )
        pause = LIMITED_SECONDS
        if after := headers.get("retry-after", ""):
            if after.isdecimal():
                pause = float(after[:9])
            else:
                with suppress(ValueError):
                    pause = parsedate_to_datetime(after).timestamp() - self._clock()
        elif response.status_code == 429 or (response.status_code == 403 and remaining == "0"):
            pause = float(reset[:12]) - self._clock() if reset.isdecimal() else LIMITED_SECONDS
        elif b"secondary-rate-limit" not in response.content:  # in the URL of GitHub's documentation
            return None
        return min(max(pause, 1.0), LONGEST_PAUSE)

    def _build_limited(self, wait: float) -> ForgeRefusal:
        message = text("forge.limited", forge=self._name, seconds=int(wait + 0.999))
        return ForgeRefusal(kind="limited", message=message, retry_after=wait)

    def _build_unreachable(self, why: str) -> ForgeRefusal:
        host = urlsplit(self.api_url).netloc.rpartition("@")[2]
        return build_refusal("unreachable", text("forge.unreachable", forge=self._name, host=host, why=why))


def _read_reason(data: JsonValue, secret: str) -> str:
    """Return the reason in an error's body, without the secret, which a proxy may echo."""
    problem = parse_one(_Problem, data) or _Problem()
    parts = [part for part in (problem.message, problem.error, problem.errors) if part]
    reason = "; ".join(p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in parts)
    return (reason.replace(secret, "…") if secret else reason)[:_LONGEST_REASON]


def _find_next_page(response: httpx2.Response) -> str | None:
    """Return the query of the next page; empty if there is none, None if no header names it."""
    if query := urlsplit(response.links.get("next", {}).get("url", "")).query:
        return query
    number = response.headers.get("x-next-page")  # GitLab's; some proxies drop `Link`
    if number and number.isdecimal():
        return response.url.copy_set_param("page", number).query.decode()
    return None if number is None and "link" not in response.headers else ""


async def _read_end(response: httpx2.Response, most: int) -> str:
    end, read = b"", 0
    async for chunk in response.aiter_bytes(65_536):
        read += len(chunk)
        end = (end + chunk)[-4 * most :]
        if read > _LONGEST_LOG:
            break
    return end.decode("utf-8", "replace")[-most:]


def _read_time(response: httpx2.Response) -> str:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return ""
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
