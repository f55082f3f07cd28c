"""The agent loop against bare httpx2: CPU per turn, at 20 and at 100 turns, and CPU per delta."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import httpx2

from tests.bench import floor, ours
from tests.bench.measure import Row, alternate, service

TURNS, MANY_TURNS, DELTAS = 20, 100, 2000


def turns(*, quick: bool) -> list[Row]:
    """CPU per streaming tool turn."""
    with service() as base, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_turns(base, Path(folder), 5 if quick else 15))


async def _turns(base: str, folder: Path, rounds: int) -> list[Row]:
    few = ours.make_app(f"{base}/turns/{TURNS}/v1", folder / "few")
    many = ours.make_app(f"{base}/turns/{MANY_TURNS}/v1", folder / "many")
    async with httpx2.AsyncClient() as client:
        assert await floor.turns(client, base, TURNS) == await ours.turns(few) == TURNS
        assert await ours.turns(many) == MANY_TURNS
        each = await alternate(lambda: floor.turns(client, base, TURNS), lambda: ours.turns(few), rounds)
        longer = await alternate(lambda: ours.turns(few), lambda: ours.turns(many), max(3, rounds // 2))
    await few.aclose()
    await many.aclose()
    return [
        each.row("turn of the loop", 3.0, scale=1000 / TURNS, unit="ms CPU", against="bare httpx2"),
        longer.per(TURNS, MANY_TURNS).row(
            "turn at 100", 1.3, scale=1000, unit="ms CPU", against="ours at 20"
        ),
    ]


def deltas(*, quick: bool) -> list[Row]:
    """CPU per delta, from the socket to the bytes of `$/progress`."""
    with service() as base, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_deltas(base, Path(folder), 5 if quick else 15))


async def _deltas(base: str, folder: Path, rounds: int) -> list[Row]:
    app = ours.make_app(f"{base}/deltas/{DELTAS}/v1", folder)
    result, said = await ours.deltas(app)
    async with httpx2.AsyncClient() as client:
        expected = await floor.deltas(client, base, DELTAS)
        assert len(result.text) == expected
        assert said > DELTAS * 100, "every delta is a message of its own"
        found = await alternate(lambda: floor.deltas(client, base, DELTAS), lambda: ours.deltas(app), rounds)
    await app.aclose()
    return [found.row("delta to $/progress", 2.0, scale=1e6 / DELTAS, unit="µs CPU", against="bare httpx2")]
