"""One request to GitHub and its answer; what it may refuse as values, and the pause that it asks for, kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import gidgethub
import httpx2
from gidgethub import sansio
from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.texts.text import Text, text
from daiku.work.answers import REFUSALS, is_forges_word

Method: TypeAlias = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
AGENT = "daiku"
VERSION = "2022-11-28"
SECONDS = 30.0
"""How long GitHub may take for one answer."""
LIMITED_SECONDS = 60.0
"""How long to wait where GitHub says that it was too much, and not for how long: what its documentation asks for."""
_SAID = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """`more`: where the next page is. `time`: the clock of the forge."""

    status: int
    data: JsonValue
    more: str = ""
    etag: str = ""
    time: str = ""


class Wire:
    """Sends requests one by one. While GitHub asks for a pause nothing is sent."""

    def __init__(
        self, api_url: str, client: httpx2.AsyncClient, clock: Callable[[], float] = time.time
    ) -> None:
        self.api_url = api_url.rstrip("/")
        self._client = client
        self._clock = clock
        self._silent_until = 0.0

    async def call(
        self,
        method: Method,
        path: str,
        *,
        token: str = "",
        jwt: str = "",
        data: JsonValue = None,
        etag: str = "",
    ) -> Answer | ForgeRefusal:
        """One request, sent once. `path` below the API's address, or the address of a next page, of which only path
        and query are taken: a token goes nowhere else."""
        wait = self._silent_until - self._clock()
        if wait > 0:
            return limited(wait)
        headers = sansio.create_headers(AGENT, oauth_token=token or None, jwt=jwt or None)
        headers["x-github-api-version"] = VERSION
        if etag:
            headers["if-none-match"] = etag
        body = b"" if data is None else json.dumps(data).encode()
        if body:
            headers["content-type"] = "application/json; charset=utf-8"
        try:
            response = await self._client.request(method, self._url(path), headers=headers, content=body)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            return ForgeRefusal(
                kind="unreachable", message=text("github.unreachable", why=type(error).__name__)
            )
        return self._read(response)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _url(self, path: str) -> str:
        if "://" not in path:
            return self.api_url + path
        ours, given = urlsplit(self.api_url), urlsplit(path)
        return given._replace(scheme=ours.scheme, netloc=ours.netloc).geturl()

    def _read(self, response: httpx2.Response) -> Answer | ForgeRefusal:
        status, headers = response.status_code, response.headers
        if status == 304:
            return Answer(status, None, time=_time(headers))
        if status in {403, 429} and (wait := self._asked_to_wait(response)) is not None:
            self._silent_until = max(self._silent_until, self._clock() + wait)
            return limited(wait)
        if status >= 500:
            return ForgeRefusal(kind="unreachable", message=text("github.broken", status=status))
        if 400 <= status < 500 and not is_forges_word(response.content):
            return unreadable()
        try:
            data, _, more = sansio.decipher_response(status, headers, response.content)
        except gidgethub.HTTPException as error:
            return ForgeRefusal(kind=REFUSALS.get(status, "bad"), message=_said(status, str(error)))
        except (KeyError, TypeError, ValueError, LookupError):
            return unreadable() if status < 400 else ForgeRefusal(kind="bad", message=_said(status, ""))
        return Answer(status, data, more or "", headers.get("etag", ""), _time(headers))

    def _asked_to_wait(self, response: httpx2.Response) -> float | None:
        """For how long GitHub asks not to be called; None where it refused for another reason."""
        headers = response.headers
        after = headers.get("retry-after", "")
        if after.isdecimal():
            return float(after)
        if headers.get("x-ratelimit-remaining") == "0":
            reset = headers.get("x-ratelimit-reset", "")
            return max(1.0, float(reset) - self._clock()) if reset.isdecimal() else LIMITED_SECONDS
        if response.status_code == 429 or b"secondary-rate-limit" in response.content:
            return LIMITED_SECONDS  # of the address of the documentation, which the answer names
        return None


def limited(wait: float) -> ForgeRefusal:
    """GitHub asks not to be called for `wait` seconds."""
    return ForgeRefusal(
        kind="limited", message=text("github.limited", seconds=int(wait + 0.999)), retry_after=wait
    )


def unreadable() -> ForgeRefusal:
    return ForgeRefusal(kind="unreadable", message=text("github.unreadable"))


def _said(status: int, message: str) -> Text:
    return text("github.said", status=status, message=message[:_SAID])


def _time(headers: Mapping[str, str]) -> str:
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return ""
