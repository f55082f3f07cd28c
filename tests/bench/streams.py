"""A hundred runs at once, each fed a delta every few milliseconds: the time in all, the gaps, the memory."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import httpx2

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.run.request import RunRequest
from tests.bench import floor, ours
from tests.bench.measure import Row, service

STREAMS, DELTAS, SPACING = 100, 200, 0.005


def streams(*, quick: bool) -> list[Row]:
    """The best of a few tries: what else the machine does is not ours. Bare httpx2 beside us tells how
    much of the rest is the machine's."""
    tries = 2 if quick else 5
    with service() as base, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_streams(f"{base}/paced/{DELTAS}/{SPACING * 1000:.0f}/v1", Path(folder), tries))


async def _streams(address: str, folder: Path, tries: int) -> list[Row]:
    app = ours.make_app(address, folder)
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(limits=limits) as client:
        url = f"{address}/chat/completions"
        await asyncio.gather(_one(app), _bare(client, url))
        resident = _resident()
        own, bare = list[tuple[float, float]](), list[tuple[float, float]]()
        for _ in range(tries):
            bare.append(await _all(lambda: _bare(client, url)))
            own.append(await _all(lambda: _one(app)))
        grown = (_resident() - resident) / STREAMS
    await app.aclose()
    (took, gap), (bare_took, _) = map(min, zip(*own, strict=True)), map(min, zip(*bare, strict=True))
    spacing = SPACING * 1000
    return [
        Row("100 streams", DELTAS * SPACING, took, 1.15, "s", 1.08, f"{DELTAS} × {spacing:.0f} ms"),
        Row("100 streams", bare_took, took, 1.1, "s", None, "bare httpx2"),
        Row("gap of a stream, p99", spacing, gap * 1000, 4.0, "ms", 2.0, "the spacing"),
        Row("memory a stream", 1, grown, 1.0, "MB", None, "1 MB"),
    ]


async def _all(one: Callable[[], Awaitable[list[float]]]) -> tuple[float, float]:
    """Seconds until the last of all streams ended, and the 99th percentile of the gaps between deltas."""
    began = perf_counter()
    gaps = await asyncio.gather(*(one() for _ in range(STREAMS)))
    took = perf_counter() - began
    return took, quantiles([gap for each in gaps for gap in each], n=100)[-1]


async def _one(app: App) -> list[float]:
    seen = list[float]()

    def listen(chunk: Chunk) -> None:
        if chunk.type == "delta":
            seen.append(perf_counter())

    result = await app.runs.run(RunRequest("go", approvals="all"), listen)
    assert result.status == "completed", result
    return _gaps(seen)


async def _bare(client: httpx2.AsyncClient, url: str) -> list[float]:
    seen = list[float]()
    async for event in floor.stream(client, url, b"{}"):
        if event["choices"] and "content" in event["choices"][0]["delta"]:
            seen.append(perf_counter())
    return _gaps(seen)


def _gaps(seen: list[float]) -> list[float]:
    """The times between deltas that were late together come as one: there are never more than were sent."""
    assert 1 < len(seen) <= DELTAS
    return [after - before for before, after in pairwise(seen)]


def _resident() -> float:
    """Megabytes of this process, 0 where the system does not tell."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0
