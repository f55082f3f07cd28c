"""The token guard: what it counts, where it counts it, and that processes never lose one another's tokens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import DaikuError
from daiku.guard.guardrails.counters import open_counter
from daiku.guard.guardrails.guardrail import Guardrail
from daiku.guard.guardrails.tokens import TokenGuard
from tests.conftest import ROOT


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis server of this test's own, on a free port."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is missing: npm test installs it only by apt")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as server:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
        server.terminate()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    match request.param:
        case "memory":
            return None
        case "sqlite":
            return tmp_path / "tokens.db"
        case _:
            return request.getfixturevalue("redis_url")


async def test_a_counter_takes_what_fits_and_not_one_token_more(store: Any) -> None:
    """R1.49: in memory, in SQLite and in Redis alike."""
    counter = open_counter(store)
    assert await counter.total("a") == 0
    assert await counter.take("a", 60, 100) == 60
    assert await counter.take("a", 41, 100) is None
    assert await counter.total("a") == 60
    assert await counter.take("a", 40, 100) == 100
    assert await counter.take("a", 0, 100) == 100
    assert await counter.take("b", 101, 100) is None
    assert await counter.total("b") == 0
    assert await counter.add("a", -30) == 70
    assert await counter.add("c", 5) == 5


async def test_many_at_once_in_one_process_are_counted_exactly(store: Any) -> None:
    counter = open_counter(store)
    taken = await asyncio.gather(*(counter.take("a", 3, 100) for _ in range(60)))
    assert sum(each is not None for each in taken) == 33
    assert await counter.total("a") == 99


def test_a_token_guard_is_a_guardrail() -> None:
    """R1.48"""
    assert isinstance(TokenGuard(max_tokens=1), Guardrail)
    assert not TokenGuard(max_tokens=1).judges_output


async def test_sessions_have_totals_of_their_own_and_a_day_and_a_user_share_one() -> None:
    for scope, other in (("session", None), ("day", "limit"), ("user", "limit")):
        guard = TokenGuard(max_tokens=100, scope=scope)  # pyright: ignore[reportArgumentType]
        assert await guard.take("one", 80) is None
        failure = await guard.take("two", 80)
        assert (failure and failure.kind) == other
        assert await guard.used("one") == 80


async def test_asked_alone_it_says_whether_a_text_still_fits() -> None:
    guard = TokenGuard(max_tokens=10)
    assert (await guard.validate_input("short"))["action"] == "pass"
    assert (await guard.validate_input("word " * 50))["action"] == "block"
    assert (await guard.validate_output("word " * 50))["action"] == "block"


async def test_a_warning_is_given_once_where_little_is_left() -> None:
    """R1.97: the overrun warning."""
    guard = TokenGuard(max_tokens=100)
    await guard.take("s", 79)
    assert await guard.warning("s") is None
    await guard.take("s", 1)
    assert "80" in (await guard.warning("s") or "")
    assert await guard.warning("s") is None


@pytest.mark.parametrize(
    ("wrong", "kind", "name"),
    [
        ({"max_tokens": 0}, ValueError, "max_tokens"),
        ({"max_tokens": "9"}, TypeError, "max_tokens"),
        ({"max_tokens": True}, TypeError, "max_tokens"),
        ({"max_tokens": 9, "scope": "week"}, ValueError, "scope"),
        ({"max_tokens": 9, "store": "mysql://x"}, ValueError, "store"),
        ({"max_tokens": 9, "store": 5}, TypeError, "store"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], kind: type[Exception], name: str) -> None:
    with pytest.raises(kind, match=name):
        TokenGuard(**wrong)


async def test_a_redis_that_is_out_of_reach_lets_nothing_through_and_tells_no_password() -> None:
    guard = TokenGuard(max_tokens=10, store="redis://user:hunter2@127.0.0.1:1/0")
    with pytest.raises(DaikuError) as raised:
        await guard.take("s", 1)
    assert raised.value.failure.kind == "connection"
    assert "hunter2" not in raised.value.failure.message


async def test_a_counter_is_of_use_in_one_loop_after_the_other(redis_url: str) -> None:
    counter = open_counter(redis_url)
    assert await asyncio.to_thread(lambda: asyncio.run(counter.add("a", 1))) == 1
    assert await counter.add("a", 1) == 2


STEPS = 1200
"""How often all of them together may take 7 tokens."""
WORKER = """
import asyncio, sys
from daiku.guard.guardrails.tokens import TokenGuard

async def main():
    guard = TokenGuard(max_tokens=int(sys.argv[2]), scope="day", store=sys.argv[1])
    print("ready", flush=True)
    while await guard.take("", 7) is None:
        print("taken", flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_eight_processes_count_exactly_although_one_is_killed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """R1.49; C1.11: what was taken is the total, never above the limit; of the killed one at most the last step."""
    store = str(tmp_path / "tokens.db") if kind == "sqlite" else request.getfixturevalue("redis_url")
    most = 7 * STEPS + 5
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    outputs = [tmp_path / f"out{n}" for n in range(8)]
    workers: list[subprocess.Popen[bytes]] = []
    for output in outputs:
        with output.open("wb") as sink:
            workers.append(
                subprocess.Popen([sys.executable, "-c", WORKER, store, str(most)], stdout=sink, env=environ)
            )
    victim = None
    while victim is None and any(worker.poll() is None for worker in workers):
        begun = (n for n, each in enumerate(outputs) if each.read_bytes().count(b"taken") >= 5)
        victim = next(begun, None)
    assert victim is not None
    workers[victim].send_signal(signal.SIGKILL)
    ended = [worker.wait(120) for worker in workers]
    assert ended.pop(victim) == -signal.SIGKILL
    assert ended == [0] * 7
    taken = sum(output.read_bytes().count(b"taken") for output in outputs)
    total = asyncio.run(TokenGuard(max_tokens=most, scope="day", store=store).used())
    assert total == 7 * STEPS, "as many as fit, and not one more"
    assert taken <= STEPS
    assert STEPS - taken <= 1, "of the killed one at most its last step was not told any more"
