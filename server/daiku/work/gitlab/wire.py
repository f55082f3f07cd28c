"""One request to GitLab by python-gitlab, in a thread; what GitLab may refuse as values, and its pauses, kept."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError
from pydantic import JsonValue, SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, RefusalKind
from daiku.texts.text import text
from daiku.tools.threads import Threads
from daiku.work.answers import REFUSALS, is_forges_word, refused

T = TypeVar("T")
Method: TypeAlias = Literal["get", "post", "put"]
Query: TypeAlias = Mapping[str, str | int]
READ_SECONDS = 30.0
CHANGE_SECONDS = 65.0
"""Longer than GitLab itself works on a request: what has not been answered then is not done later either."""
LIMITED_SECONDS = 60.0
"""How long to wait where GitLab says that it was too much, and not for how long."""
LONGEST_PAUSE = 3600.0
"""Seconds: a longer pause than this is not kept, whatever the answer says."""
THREADS = 4
"""Requests that are under way at once."""
_SAID = 300
_VERSION = re.compile(r"/api/v4/*$")
_TAIL_READ = 50_000_000
"""Bytes of a log that are read for its end: what is longer is cut there."""
_KINDS: Mapping[int, RefusalKind] = {**REFUSALS, 409: "exists", 429: "limited"}


@dataclass(frozen=True, slots=True)
class Answer:
    """`more`: the number of the next page, 0 where there is none."""

    data: JsonValue
    more: int = 0


class _Session(requests.Session):
    """Follows nothing: a token goes to no other address than the one that the settings name."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None


class Wire:
    """Sends requests, some at a time. While GitLab asks for a pause nothing is sent."""

    def __init__(self, api_url: str, token: SecretStr, clock: Callable[[], float] = time.time) -> None:
        self.url = _VERSION.sub("", api_url.rstrip("/"))
        self.token = token
        self._clock = clock
        self._silent_until = 0.0
        self._heard = threading.local()
        self._session = _Session()
        self._session.hooks["response"].append(self._hear)
        self._gitlab = Gitlab(
            self.url,
            private_token=token.get_secret_value() or None,
            user_agent="daiku",
            keep_base_url=True,
            session=self._session,
        )
        self._threads = Threads(THREADS)

    async def call(
        self, method: Method, path: str, query: Query, data: JsonValue = None
    ) -> Answer | ForgeRefusal:
        """One request, sent once."""
        return await self._in_thread(lambda: self._ask(method, path, query, data))

    async def tail(self, path: str, most: int) -> str | ForgeRefusal:
        """The last `most` characters of a text, which may be large."""
        return await self._in_thread(lambda: self._end_of(path, most))

    async def aclose(self) -> None:
        """Let go of connections; what is under way is waited for by nobody, also not at the end of the program."""
        await self._threads.run(self._session.close)

    async def _in_thread(self, work: Callable[[], T | ForgeRefusal]) -> T | ForgeRefusal:
        return await self._threads.run(lambda: self._careful(work))

    def _careful(self, work: Callable[[], T | ForgeRefusal]) -> T | ForgeRefusal:
        wait = self._silent_until - self._clock()
        if wait > 0:
            return limited(wait)
        self._heard.headers = {}
        try:
            return work()
        except GitlabError as error:
            return self._refusal(error)
        except requests.RequestException as error:
            return unreachable(self.url, type(error).__name__)
        except RecursionError:  # JSON nested deeper than anything that GitLab says
            return unreadable()

    def _ask(self, method: Method, path: str, query: Query, data: JsonValue) -> Answer | ForgeRefusal:
        response = self._gitlab.http_request(
            method,
            path,
            query_data=dict(query),
            post_data=data if isinstance(data, dict) else None,
            timeout=READ_SECONDS if method == "get" else CHANGE_SECONDS,
            obey_rate_limit=False,
            retry_transient_errors=False,
            max_retries=0,
        )
        try:
            found: JsonValue = response.json()
        except ValueError:
            return unreadable()
        more = response.headers.get("X-Next-Page", "")
        return Answer(found, int(more) if more.isdecimal() else 0)

    def _end_of(self, path: str, most: int) -> str:
        response = self._gitlab.http_request(
            "get", path, streamed=True, timeout=READ_SECONDS, obey_rate_limit=False, max_retries=0
        )
        kept, read = b"", 0
        with response:
            for chunk in response.iter_content(65_536):
                read += len(chunk)
                kept = (kept + chunk)[-4 * most :]
                if read > _TAIL_READ:
                    break
        return kept.decode("utf-8", "replace")[-most:]

    def _hear(self, response: requests.Response, *_args: object, **_kwargs: object) -> None:
        self._heard.headers = response.headers

    def _refusal(self, error: GitlabError) -> ForgeRefusal:
        headers: Mapping[str, str] = self._heard.headers
        status = error.response_code or 0
        pause = self._pause(headers)
        if status == 429 or (status in (403, 503) and "Retry-After" in headers):
            pause = min(max(pause or LIMITED_SECONDS, 1.0), LONGEST_PAUSE)
            self._silent_until = self._clock() + pause
            return limited(pause)
        # What stands between may send back what it was sent.
        secret = self.token.get_secret_value()
        said = (str(error.error_message).replace(secret, "…") if secret else str(error.error_message))[:_SAID]
        if status >= 500 or status in (0, 408):
            return unreachable(self.url, f"{status} {said}".strip())
        if 400 <= status < 500 and not is_forges_word(error.response_body or b""):
            return unreadable()
        kind = _KINDS.get(status, "bad")
        return ForgeRefusal(kind=kind, message=text("gitlab.refused", status=status, why=said))

    def _pause(self, headers: Mapping[str, str]) -> float:
        """The seconds that GitLab asks to wait, 0 where it says nothing that can be read."""
        after, reset = headers.get("Retry-After", ""), headers.get("RateLimit-Reset", "")
        if after.isdecimal():
            return float(after[:9])
        if after:
            try:
                return parsedate_to_datetime(after).timestamp() - self._clock()
            except ValueError:
                return 0.0
        return float(reset[:12]) - self._clock() if reset.isdecimal() else 0.0


def limited(seconds: float) -> ForgeRefusal:
    message = text("gitlab.limited", seconds=round(seconds))
    return ForgeRefusal(kind="limited", message=message, retry_after=seconds)


def unreachable(url: str, why: str) -> ForgeRefusal:
    message = text("gitlab.unreachable", host=urlsplit(url).netloc.rpartition("@")[2], why=why)
    return ForgeRefusal(kind="unreachable", message=message)


def unreadable() -> ForgeRefusal:
    return refused("unreadable", text("gitlab.unreadable"))
