"""A hundred sessions at once through `daiku serve` and through the language server, against the model service
itself read by bare httpx2: the time in all, the gaps, whose text is whose, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any, Protocol

import httpx2

from tests.bench.measure import ROOT, Row, service

Json = dict[str, Any]
SESSIONS, DELTAS, SPACING = 100, 200, 0.005
TIMEOUT = 120


@dataclass(frozen=True, slots=True)
class Round:
    """All sessions at once: seconds in all, the 99th percentile of the gaps between deltas."""

    took: float
    gap: float


class Front(Protocol):
    """One way to the model: streams the reply to a text, tells when each piece of it came."""

    @property
    def pid(self) -> int: ...

    async def prepare(self) -> str:
        """Whatever comes before a request, such as its session."""
        ...

    async def ask(self, session: str, text: str) -> tuple[str, list[float]]: ...


@dataclass(frozen=True, slots=True)
class Bare:
    """The model service itself."""

    client: httpx2.AsyncClient
    url: str
    pid: int = 0

    async def prepare(self) -> str:
        return ""

    async def ask(self, session: str, text: str) -> tuple[str, list[float]]:
        body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": text}]}
        said, seen = list[str](), list[float]()
        async with self.client.stream("POST", self.url, json=body) as response:
            async for data in _events(response):
                if data != b"[DONE]":
                    choices = json.loads(data)["choices"]
                    if choices and (piece := choices[0]["delta"].get("content")):
                        said.append(piece)
                        seen.append(perf_counter())
        return "".join(said), seen


@dataclass(frozen=True, slots=True)
class Serve:
    """`daiku serve`."""

    client: httpx2.AsyncClient

    pid: int

    async def prepare(self) -> str:
        return (await self.client.post("/v1/sessions", json={})).json()["sessionId"]

    async def ask(self, session: str, text: str) -> tuple[str, list[float]]:
        said, seen = list[str](), list[float]()
        path = f"/v1/sessions/{session}/runs"
        async with self.client.stream("POST", path, json={"text": text, "approvals": "all"}) as response:
            async for data in _events(response):
                value = json.loads(data)
                if value.get("type") == "delta":
                    assert value["session"] == session
                    said.append(value["data"]["text"])
                    seen.append(perf_counter())
                elif "status" in value:
                    assert value["status"] == "completed", value
        return "".join(said), seen


async def _events(response: httpx2.Response) -> AsyncGenerator[bytes]:
    assert response.status_code == 200, await response.aread()
    rest = b""
    async for block in response.aiter_bytes():
        *events, rest = (rest + block).split(b"\n\n")
        for event in events:
            if (at := event.find(b"data: ")) >= 0:
                yield event[at + 6 :]


class Lsp:
    """The language server over its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._in, self._out = process.stdin, process.stdout
        self._number = 0
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._streams: dict[int, Callable[[Json], None]] = {}
        self._reading = asyncio.create_task(self._read())

    async def prepare(self) -> str:
        return (await self.call("daiku/session/new", {}))["sessionId"]

    async def ask(self, session: str, text: str) -> tuple[str, list[float]]:
        said, seen = list[str](), list[float]()

        def hear(value: Json) -> None:
            if value["type"] == "delta":
                assert value["session"] == session
                said.append(value["data"]["text"])
                seen.append(perf_counter())

        token = self._number + 1
        self._streams[token] = hear
        params = {"text": text, "sessionId": session, "approvals": "all", "partialResultToken": token}
        result = await self.call("daiku/chat", params)
        del self._streams[token]
        assert result["status"] == "completed", result
        return "".join(said), seen

    async def call(self, method: str, params: Json) -> Any:
        self._number += 1
        number = self._number
        waiting = self._answers[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = await waiting
        assert "error" not in answer, answer
        return answer["result"]

    async def open(self, folder: Path) -> None:
        client = {"approvals": True}
        await self.call(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "capabilities": {},
                "initializationOptions": {"client": client},
            },
        )
        self._send({"jsonrpc": "2.0", "method": "initialized", "params": {}})

    async def close(self) -> None:
        await self.call("shutdown", {})
        self._send({"jsonrpc": "2.0", "method": "exit"})
        await self._reading

    def _send(self, message: Json) -> None:
        body = json.dumps(message).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        rest = b""
        while block := await self._out.read(256 * 1024):
            rest += block
            at = 0
            while (end := rest.find(b"\r\n\r\n", at)) >= 0:
                length = int(rest[at + 16 : rest.find(b"\r\n", at)])
                if len(rest) < end + 4 + length:
                    break
                at = end + 4 + length
                self._heard(json.loads(rest[end + 4 : at]))
            rest = rest[at:]

    def _heard(self, message: Json) -> None:
        if message.get("method") == "$/progress":
            self._streams[message["params"]["token"]](message["params"]["value"])
        elif "id" in message and "method" not in message:
            self._answers.pop(message["id"]).set_result(message)


def environment(address: str, home: Path) -> dict[str, str]:
    """What a front is started with: its model at `address`, all it keeps in `home`."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT}",
        "DAIKU_HOME": str(home),
        "DAIKU_LLM__PROVIDER": "compatible",
        "DAIKU_LLM__MODEL": "bench",
        "DAIKU_LLM__COMPATIBLE__BASE_URL": address,
        "DAIKU_SANDBOX__MODE": "off",
    }


@asynccontextmanager
async def bare(address: str) -> AsyncGenerator[Bare]:
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=TIMEOUT) as client:
        yield Bare(client, f"{address}/chat/completions")


@asynccontextmanager
async def serving(address: str, folder: Path) -> AsyncGenerator[Serve]:
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "daiku", "serve", cwd=project, env=environment(address, folder / "home"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    headers = {"authorization": f"Bearer {told['token']}"}
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=60)
    try:
        async with httpx2.AsyncClient(
            base_url=told["url"], headers=headers, limits=limits, timeout=TIMEOUT
        ) as client:
            yield Serve(client, process.pid)
        process.terminate()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def editing(address: str, folder: Path) -> AsyncGenerator[Lsp]:
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "daiku", "lsp", cwd=project, env=environment(address, folder / "home"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        client = Lsp(process)
        await client.open(project)
        yield client
        await client.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def at_once(front: Front, sessions: int, deltas: int) -> Round:
    """So many sessions at once; each must be given its own text, whole."""
    names = await asyncio.gather(*(front.prepare() for _ in range(sessions)))
    gc.collect()
    began = perf_counter()
    told = await asyncio.gather(*(front.ask(name, f"go #{100 + n}#") for n, name in enumerate(names)))
    took = perf_counter() - began
    for number, (said, _) in enumerate(told):
        assert said == "".join(f"{100 + number:06}.{i} " for i in range(deltas)), said[:80]
    gaps = [after - before for _, seen in told for before, after in pairwise(seen)]
    return Round(took, quantiles(gaps, n=100)[-1])


def files_of(pid: int) -> int:
    """How many files a process has open; 0 where the system does not tell."""
    place = Path(f"/proc/{pid}/fd")
    return len(list(place.iterdir())) if place.exists() else 0


def megabytes_of(pid: int) -> float:
    """The memory of a process; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def fronts(*, quick: bool) -> list[Row]:
    """Rounds of the model itself and of each front in turn: what else the machine does is in all of them."""
    tries = 2 if quick else 5
    with service() as base, tempfile.TemporaryDirectory() as folder:
        address = f"{base}/tagged/{DELTAS}/{SPACING * 1000:.0f}/v1"
        return asyncio.run(_fronts(address, Path(folder), tries))


async def _fronts(address: str, folder: Path, tries: int) -> list[Row]:
    rows = list[Row]()
    opened: dict[str, Callable[[], Any]] = {
        "serve": lambda: serving(address, folder / "serve"),
        "lsp": lambda: editing(address, folder / "lsp"),
    }
    async with bare(address) as floor:
        for name, begin in opened.items():
            async with begin() as front:
                rows += await _against(name, floor, front, tries)
    return rows


async def _against(name: str, floor: Bare, front: Front, tries: int) -> list[Row]:
    await at_once(floor, SESSIONS, DELTAS)
    await at_once(front, SESSIONS, DELTAS)
    await asyncio.sleep(1)
    memory, files = megabytes_of(front.pid), files_of(front.pid)
    below, ours = list[Round](), list[Round]()
    for _ in range(tries):
        below.append(await at_once(floor, SESSIONS, DELTAS))
        ours.append(await at_once(front, SESSIONS, DELTAS))
    await asyncio.sleep(1)
    grown = megabytes_of(front.pid) - memory
    left = files_of(front.pid) - files
    took = min(r.took for r in below), min(r.took for r in ours)
    gap = min(r.gap for r in below), min(r.gap for r in ours)
    what = f"{SESSIONS} sessions, {name}"
    return [
        Row(what, took[0], took[1], 1.15, "s", None, "bare httpx2"),
        Row(f"{what}: gap, p99", gap[0] * 1000, gap[1] * 1000, 3.0, "ms", None, "bare httpx2"),
        Row(f"{what}: memory more", 10, max(grown, 0.0), 1.0, "MB", None, f"{tries} × {SESSIONS} runs"),
        Row(f"{what}: files more", 5, max(left, 0), 1.0, "", None, "a few"),
    ]
