"""Commands of one session reach one another's servers; other sessions and the outside are not reached."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daiku.dataclass import replace
from daiku.domain.config import SandboxSettings
from daiku.guard.sandbox import bubblewrap, session_network, sessions
from daiku.tools.shell import OutputArgs, RunArgs, output, run
from daiku.workspace import programs
from tests.tools.shell.test_shell import Bench, data, gone

# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")]

SERVER = """
import socket, sys
kind, family, address = sys.argv[1:4]
s = socket.socket(getattr(socket, family), getattr(socket, kind))
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, 8797))
if kind == "SOCK_STREAM":
    s.listen()
print("ready", flush=True)
while True:
    if kind == "SOCK_STREAM":
        c, _ = s.accept()
        c.sendall(b"served")
        c.close()
    else:
        _, peer = s.recvfrom(10)
        s.sendto(b"served", peer)
"""
CLIENT = """
import socket, sys
kind, family, address = sys.argv[1:4]
s = socket.socket(getattr(socket, family), getattr(socket, kind))
s.settimeout(5)
s.connect((address, 8797))
if kind == "SOCK_DGRAM":
    s.send(b"x")
print(s.recv(10).decode())
"""


@pytest.fixture
async def bench(workspace: Path) -> AsyncIterator[Bench]:
    bench = Bench(workspace.resolve(), SandboxSettings())
    (bench.root / "server.py").write_text(SERVER)
    (bench.root / "client.py").write_text(CLIENT)
    yield bench
    for name in bench.jobs.names("s"):
        job = bench.jobs.get("s", name)
        assert job is not None
        await job.end()


async def serve(bench: Bench, how: str = "SOCK_STREAM AF_INET 127.0.0.1", **more: bool) -> str:
    started = await bench.run(f"python3 server.py {how}", background=True, **more)
    looked = await output(OutputArgs(id=data(started)["id"], wait=10), bench.context, bench.jobs)
    assert "ready" in looked.text
    return started.text


@pytest.mark.parametrize(
    ("served", "asked"),
    [
        ("SOCK_STREAM AF_INET 127.0.0.1", "SOCK_STREAM AF_INET 127.0.0.1"),
        ("SOCK_STREAM AF_INET 0.0.0.0", "SOCK_STREAM AF_INET localhost"),
        ("SOCK_STREAM AF_INET6 ::1", "SOCK_STREAM AF_INET6 ::1"),
        ("SOCK_STREAM AF_INET 127.0.0.9", "SOCK_STREAM AF_INET 127.0.0.9"),
        ("SOCK_DGRAM AF_INET 127.0.0.1", "SOCK_DGRAM AF_INET 127.0.0.1"),
    ],
)
async def test_a_background_server_is_reached_by_the_next_command(
    bench: Bench, served: str, asked: str
) -> None:
    """A23.10: by every address of loopback, TCP and UDP."""
    told = await serve(bench, served)
    assert "reach it on 127.0.0.1" in told
    assert "served" in data(await bench.run(f"python3 client.py {asked}"))["output"]


async def test_a_background_command_reaches_a_background_server(bench: Bench) -> None:
    await serve(bench)
    started = await bench.run("python3 client.py SOCK_STREAM AF_INET 127.0.0.1", background=True)
    looked = await output(OutputArgs(id=data(started)["id"], wait=10), bench.context, bench.jobs)
    assert "served" in looked.text


async def test_another_session_does_not_reach_it(bench: Bench) -> None:
    """A23.10: a namespace belongs to one session."""
    await serve(bench)
    context = replace(bench.context, session="other")
    asked = RunArgs(command="python3 client.py SOCK_STREAM AF_INET 127.0.0.1")
    result = await run(asked, context, bench.jobs)
    assert not result.ok
    assert "only servers that commands of this session started" in result.text


async def test_a_command_with_the_network_does_not_reach_it_and_both_results_say_so(bench: Bench) -> None:
    """A23.10: what cannot be is said."""
    told = await serve(bench)
    result = await bench.run("python3 client.py SOCK_STREAM AF_INET 127.0.0.1", network=True)
    assert not result.ok
    assert "without network: true" in told
    assert "only servers that run with network: true" in result.text


async def test_the_network_of_a_session_leads_nowhere_else(bench: Bench) -> None:
    listening = await asyncio.start_server(lambda _r, w: w.write(b"host"), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    line = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
    for address in (f"127.0.0.1 {port}", "192.0.2.1 80"):
        result = await bench.run(f'python3 -c "{line}" {address}')
        assert not result.ok
        assert "refused" in result.text or "unreachable" in result.text
    listening.close()


async def test_where_no_network_can_be_shared_both_results_say_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "find_program", lambda _name: "")
    monkeypatch.setattr(sessions, "_entries", {})
    told = await serve(bench)
    assert "Each command has its own network here" in told
    result = await bench.run("python3 client.py SOCK_STREAM AF_INET 127.0.0.1")
    assert not result.ok
    assert "Each command has its own network here" in result.text


def test_a_program_that_does_not_enter_the_namespace_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.10: the namespace is compared."""
    fake = tmp_path / "nsenter"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sessions, "find_program", lambda _name: str(fake))
    monkeypatch.setattr(sessions, "_entries", {})
    assert session_network("faked") == ()
    assert programs.find_program("bwrap")


def test_only_so_many_namespaces_are_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    monkeypatch.setattr(sessions, "_entries", {})
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):
        assert session_network(f"s{number}")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 4
    assert list(sessions._entries) == ["s3", "s4"]


async def test_a_server_and_its_network_end_with_a_killed_daiku(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        f"""
import asyncio
from pathlib import Path
from tests.tools.shell.test_shell import Bench, SandboxSettings
async def main():
    bench = Bench(Path({str(bench.root)!r}), SandboxSettings())
    await bench.run("touch begun; sleep 4712.7", background=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    )
    root = Path(__file__).resolve().parents[3]
    env = {**os.environ, "PYTHONPATH": f"{root / 'server'}:{root}"}
    server = await asyncio.create_subprocess_exec(sys.executable, str(script), env=env)
    async with asyncio.timeout(20):
        while not (bench.root / "begun").exists():
            await asyncio.sleep(0.05)
    server.kill()
    await server.wait()
    assert await gone("4712.7", within=3)
