"""From the start of the process to the answer to `initialize`, and until the server can really work."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

from tests.bench.client import EMPTY, OURS, started
from tests.bench.measure import Row, Work, alternate


def start(*, quick: bool) -> list[Row]:
    """Time to the answer, and to readiness."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_start(Path(folder), 5 if quick else 15))


async def wall(work: Work) -> float:
    """Seconds on the clock."""
    began = perf_counter()
    await work()
    return perf_counter() - began


async def _start(folder: Path, rounds: int) -> list[Row]:
    async def answered(arguments: tuple[str, ...]) -> None:
        with started(arguments, folder) as client:
            client.initialize(folder)

    async def ready(arguments: tuple[str, ...], method: str) -> None:
        with started(arguments, folder) as client:
            client.initialize(folder)
            client.tell("initialized", {})
            client.ask(method, {})

    hello = await alternate(partial(answered, EMPTY), partial(answered, OURS), rounds, wall)
    whole = await alternate(
        partial(ready, (*EMPTY, "--more"), "bench/echo"),
        partial(ready, OURS, "daiku/session/list"),
        rounds,
        wall,
    )
    return [
        hello.row("start to initialize", 1.15, wish=0.3, scale=1000, unit="ms", against="empty pygls"),
        whole.row("start to ready", 1.1, scale=1000, unit="ms", against="pygls + pydantic + jinja2"),
    ]
