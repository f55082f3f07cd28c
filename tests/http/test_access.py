"""Who is let in: the token, the Host, the Origin, and how much may be sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daiku.fronts.http.access import MAX_BODY, own_hosts
from tests.http.serving import TOKEN, Served, served

REPLY = {"text": "hello"}


async def status(s: Served, *headers: tuple[str, str], path: str = "/v1/agents") -> int:
    """The status of a request with these headers and no others, beside Host."""
    given = dict(headers)
    lines = [f"GET {path} HTTP/1.1", f"Host: {given.pop('Host', s.url.removeprefix('http://'))}"]
    lines += [f"{name}: {value}" for name, value in headers if name in given]
    return await raw(s, ("\r\n".join([*lines, "", ""])).encode())


async def raw(s: Served, request: bytes) -> int:
    """The status that the server answers to these bytes; 0 where it only closes."""
    host, _, port = s.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        await writer.drain()
        async with asyncio.timeout(10):
            line = await reader.readline()
        return int(line.split()[1]) if line else 0
    finally:
        writer.close()


BEARER = ("Authorization", f"Bearer {TOKEN}")


async def test_nothing_but_its_health_is_told_without_the_token(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        assert await status(s, BEARER) == 200
        assert await status(s, ("Authorization", f"bearer {TOKEN}")) == 200
        assert await status(s) == 401
        assert await status(s, ("Authorization", f"Bearer {TOKEN}x")) == 401
        assert await status(s, ("Authorization", f"Bearer {TOKEN[:-1]}")) == 401
        assert await status(s, ("Authorization", "Bearer ")) == 401
        assert await status(s, ("Authorization", TOKEN)) == 401
        assert await status(s, ("Authorization", f"Basic {TOKEN}")) == 401
        assert await status(s, BEARER, BEARER) == 401
        assert await status(s, path="/healthz") == 200
        assert await status(s, path="/v1/nothing") == 401
        assert await status(s, path="/healthz/../v1/agents") == 401
        assert await status(s, path="//healthz") == 401


async def test_the_token_is_refused_in_an_address(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        assert await status(s, path=f"/v1/agents?token={TOKEN}") == 401
        assert await status(s, path=f"/v1/agents?access_token={TOKEN}") == 401
        assert await status(s, BEARER, path=f"/v1/agents?access_token={TOKEN}") == 401


async def test_another_name_for_this_machine_is_refused(tmp_path: Path) -> None:
    """A page that makes its own name point to this machine (DNS rebinding) sends that name as the Host."""
    async with served(tmp_path, REPLY) as s:
        port = s.url.rpartition(":")[2]
        assert await status(s, BEARER, ("Host", f"localhost:{port}")) == 200
        assert await status(s, BEARER, ("Host", f"LOCALHOST:{port}")) == 200
        assert await status(s, BEARER, ("Host", f"[::1]:{port}")) == 200
        for host in ("evil.example", f"evil.example:{port}", "localhost", "127.0.0.1", f"127.0.0.1.evil.example:{port}",
                     f"127.0.0.1:{int(port) + 1}", f"localhost.:{port}", f"0.0.0.0:{port}", f"2130706433:{port}", ""):  # fmt: skip
            assert await status(s, BEARER, ("Host", host)) == 403, host
            assert await status(s, ("Host", host), path="/healthz") == 403, host
        assert (
            await raw(s, f"GET /v1/agents HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()) == 403
        )


async def test_a_page_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        port = s.url.rpartition(":")[2]
        assert await status(s, BEARER, ("Origin", s.url)) == 200
        for origin in ("null", "https://evil.example", f"http://localhost:{int(port) + 1}", "file://", "http://localhost",
                       f"http://evil.example:{port}", f"{s.url}.evil.example", ""):  # fmt: skip
            assert await status(s, BEARER, ("Origin", origin)) == 403, origin
        assert await status(s, BEARER, ("Origin", s.url), ("Origin", s.url)) == 403


async def test_no_preflight_of_a_browser_passes(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        theirs = await s.client.request("OPTIONS", "/v1/sessions", headers=asks)
        own = await s.client.request("OPTIONS", "/v1/sessions", headers={**asks, "origin": s.url})
        assert (theirs.status_code, own.status_code) == (403, 405)
        fetched = await s.client.get("/v1/agents", headers={"origin": s.url})
        for answer in (theirs, own, fetched):
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]


async def test_a_mebibyte_is_taken_and_a_byte_more_is_not(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        head, tail = b'{"title": "', b'"}'
        largest = head + b" " * (MAX_BODY - len(head) - len(tail)) + tail
        kind = {"content-type": "application/json"}

        async def pieces(body: bytes) -> AsyncIterator[bytes]:
            for at in range(0, len(body), 100_000):
                yield body[at : at + 100_000]

        async def send(content: bytes | AsyncIterator[bytes]) -> int:
            return (await s.client.post("/v1/sessions", content=content, headers=kind)).status_code

        assert await send(largest) == 422  # so long a title
        assert await send(pieces(largest)) == 422
        assert await send(largest + b" ") == 413
        assert await send(pieces(largest + b" ")) == 413
        assert (await s.client.post("/v1/sessions", json={})).status_code == 200


async def test_a_head_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.fronts.http.server.HEAD_SECONDS", 0.1)
    async with served(tmp_path, REPLY) as s:
        for sent in (b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"):
            with contextlib.suppress(ConnectionError):
                assert await raw(s, sent) == 0


async def test_what_is_no_request_ends_its_connection_alone(tmp_path: Path) -> None:
    async with served(tmp_path, REPLY) as s:
        host = s.url.removeprefix("http://")
        assert await raw(s, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") == 400
        assert await raw(s, f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\n\r\n".encode()) == 400
        double = f"POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"
        assert await raw(s, double.encode()) == 400
        assert await raw(s, b"A" * 200_000) == 400
        assert await status(s, BEARER) == 200


def test_the_own_names_are_those_of_the_address_where_a_request_arrived() -> None:
    near = {"127.0.0.1:5", "localhost:5", "[::1]:5"}
    assert own_hosts(("127.0.0.1", 5), ()) == near
    assert own_hosts(("::1", 5), ()) == near
    assert own_hosts(("192.0.2.7", 5), ("daiku.example",)) == {"192.0.2.7:5", "daiku.example"}
    assert own_hosts(("2001:db8::1", 5), ()) == {"[2001:db8::1]:5"}
    assert {"localhost", "localhost:80"} <= own_hosts(("127.0.0.1", 80), ())
