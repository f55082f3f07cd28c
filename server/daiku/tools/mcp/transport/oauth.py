"""Signing in to a server (OAuth): the SDK's flow, tokens in a private file, the answer on a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, JsonValue

from daiku.domain.base import JsonObject
from daiku.texts.text import text
from daiku.tools.mcp.definitions import digest_of
from daiku.tools.mcp.launch import Launch, McpServerError, expand_env, token_file

SIGN_IN_SECONDS = 300.0
CALLBACK = "/callback"
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Daiku</title><p>{text}</p>"
    "<p>You can close this page and go back to Daiku.</p>"
)


class TokenFile:
    """The SDK's TokenStorage over one file, 0600. `registered`: a client that the settings name."""

    def __init__(self, home: Path, url: str, registered: OAuthClientInformationFull | None = None) -> None:
        self._registered = registered
        self.path = token_file(home, url)

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(raw) if (raw := self._read().get("tokens")) else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        raw = self._read().get("client")
        return self._registered or (OAuthClientInformationFull.model_validate(raw) if raw else None)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write("client", client_info.model_dump(mode="json", exclude_none=True))

    def _read(self) -> JsonObject:
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON

    def _write(self, key: str, value: JsonValue) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({**self._read(), key: value})
        new = self.path.with_suffix(f".{os.getpid()}.new")
        handle = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        new.replace(self.path)


class Redirect:
    """Waits on 127.0.0.1 for the browser to come back with the code. The port follows from the server's
    address, because it stands in what was registered; it is open only while somebody signs in."""

    def __init__(self, url: str) -> None:
        self.port = 20_000 + int(digest_of(url), 16) % 12_000  # below what systems give out by themselves
        self._server: asyncio.Server | None = None
        self._found: asyncio.Future[AuthorizationCodeResult] | None = None

    async def listen(self) -> None:
        """Open the port. Raises Broken where another program has it."""
        self._found = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        except OSError as error:
            raise McpServerError(
                text("mcp.port_taken", port=self.port, what=error.strerror or ""), gone=True
            ) from None

    async def code(self) -> AuthorizationCodeResult:
        """What the browser brought. Raises Broken: refused, or nobody came in time."""
        assert self._found is not None
        try:
            async with asyncio.timeout(SIGN_IN_SECONDS):
                return await self._found
        except TimeoutError:
            raise McpServerError(text("mcp.nobody_signed_in"), gone=True) from None
        finally:
            self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
            text, status = "There is nothing here.", "404 Not Found"
            if len(head) >= 2 and head[0] == "GET" and urlsplit(head[1]).path == CALLBACK:
                text, status = self._take(parse_qs(urlsplit(head[1]).query)), "200 OK"
            body = _PAGE.format(text=text).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                "Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    def _take(self, query: dict[str, list[str]]) -> str:
        assert self._found is not None
        code, state, iss = (query.get(name, [""])[0] for name in ("code", "state", "iss"))
        if not code:
            if not self._found.done():
                self._found.set_exception(McpServerError(text("mcp.sign_in_refused"), gone=True))
            return "The sign-in was refused."
        if not self._found.done():
            self._found.set_result(AuthorizationCodeResult(code=code, state=state or None, iss=iss or None))
        return "You are signed in."


def sign_in(launch: Launch, home: Path, show: Callable[[str], Awaitable[None]]) -> OAuthClientProvider:
    """The authentication of requests to the server. It does nothing until the server asks for it; then `show`
    gets the address that the person is to open."""
    url, given = launch.settings.url, launch.settings.oauth
    redirect = Redirect(url)
    address = AnyUrl(f"http://127.0.0.1:{redirect.port}{CALLBACK}")

    async def shown(page: str) -> None:
        await show(page)  # raises Broken where nobody is there
        await redirect.listen()

    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Daiku",
            redirect_uris=[address],
            grant_types=["authorization_code", "refresh_token"],
            scope=given.scope or None,
        ),
        storage=TokenFile(home, url, _registered(launch, address)),
        client_metadata_url=given.client_metadata_url or None,
        redirect_handler=shown,
        callback_handler=redirect.code,
    )


def _registered(launch: Launch, address: AnyUrl) -> OAuthClientInformationFull | None:
    """The client that the settings name; None where it is to register itself."""
    given = launch.settings.oauth
    if not given.client_id:
        return None
    secret = expand_env(given.client_secret, os.environ)
    return OAuthClientInformationFull(
        client_id=given.client_id,
        client_secret=secret or None,
        redirect_uris=[address],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
        scope=given.scope or None,
    )
