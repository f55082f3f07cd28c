"""OAuth sign-in to a server: the SDK's flow, tokens in a private file, the code on a loopback port."""

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
from daiku.tools.mcp.definitions import hash_text
from daiku.tools.mcp.launch import Launch, McpServerError, expand_env, find_token_path

SIGN_IN_SECONDS = 300.0
"""Seconds to wait for the user's sign-in."""
CALLBACK = "/callback"
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Daiku</title><p>{text}</p>"
    "<p>You can close this page and go back to Daiku.</p>"
)


class TokenFile:
    """The SDK's TokenStorage in one file of mode 0600. `registered`: the client that the settings name."""

    def __init__(self, home: Path, url: str, registered: OAuthClientInformationFull | None = None) -> None:
        self._registered = registered
        self.path = find_token_path(home, url)

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
            content = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON

    def _write(self, key: str, value: JsonValue) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({**self._read(), key: value})
        new = self.path.with_suffix(f".{os.getpid()}.new")
        handle = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        new.replace(self.path)


class Redirect:
    """Receiver of the authorization code on 127.0.0.1.

    The port is derived from the server's URL, because the registration contains it. It is open only during a
    sign-in.
    """

    def __init__(self, url: str) -> None:
        self.port = 20_000 + int(hash_text(url), 16) % 12_000  # below the range of ephemeral ports
        self._server: asyncio.Server | None = None
        self._result: asyncio.Future[AuthorizationCodeResult] | None = None

    async def listen(self) -> None:
        """Open the port. Raises McpServerError if another program uses it."""
        self._result = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._handle_request, "127.0.0.1", self.port)
        except OSError as error:
            raise McpServerError(
                text("mcp.port_taken", port=self.port, what=error.strerror or ""), is_lost=True
            ) from None

    async def wait_for_code(self) -> AuthorizationCodeResult:
        """Wait for the browser's result. Raises McpServerError if it was refused or did not come in time."""
        assert self._result is not None
        try:
            async with asyncio.timeout(SIGN_IN_SECONDS):
                return await self._result
        except TimeoutError:
            raise McpServerError(text("mcp.nobody_signed_in"), is_lost=True) from None
        finally:
            self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
            text, status = "There is nothing here.", "404 Not Found"
            if len(head) >= 2 and head[0] == "GET" and urlsplit(head[1]).path == CALLBACK:
                text, status = self._handle_query(parse_qs(urlsplit(head[1]).query)), "200 OK"
            body = _PAGE.format(text=text).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                "Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    def _handle_query(self, query: dict[str, list[str]]) -> str:
        assert self._result is not None
        code, state, iss = (query.get(name, [""])[0] for name in ("code", "state", "iss"))
        if not code:
            if not self._result.done():
                self._result.set_exception(McpServerError(text("mcp.sign_in_refused"), is_lost=True))
            return "The sign-in was refused."
        if not self._result.done():
            self._result.set_result(AuthorizationCodeResult(code=code, state=state or None, iss=iss or None))
        return "You are signed in."


def build_auth(launch: Launch, home: Path, show: Callable[[str], Awaitable[None]]) -> OAuthClientProvider:
    """Build the authentication of requests. It starts when the server asks; `show` then gets the URL to open."""
    url, oauth_settings = launch.settings.url, launch.settings.oauth
    redirect = Redirect(url)
    address = AnyUrl(f"http://127.0.0.1:{redirect.port}{CALLBACK}")

    async def show_page(page: str) -> None:
        await show(page)  # raises McpServerError if no user is there
        await redirect.listen()

    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Daiku",
            redirect_uris=[address],
            grant_types=["authorization_code", "refresh_token"],
            scope=oauth_settings.scope or None,
        ),
        storage=TokenFile(home, url, _find_registered_client(launch, address)),
        client_metadata_url=oauth_settings.client_metadata_url or None,
        redirect_handler=show_page,
        callback_handler=redirect.wait_for_code,
    )


def _find_registered_client(launch: Launch, address: AnyUrl) -> OAuthClientInformationFull | None:
    """Return the client that the settings name; None to register a new one."""
    oauth_settings = launch.settings.oauth
    if not oauth_settings.client_id:
        return None
    secret = expand_env(oauth_settings.client_secret, os.environ)
    return OAuthClientInformationFull(
        client_id=oauth_settings.client_id,
        client_secret=secret or None,
        redirect_uris=[address],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
        scope=oauth_settings.scope or None,
    )
