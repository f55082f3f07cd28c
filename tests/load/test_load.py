"""Many sessions at once, through real processes: each its own text, nothing left behind; and the load by locust."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.fronts import at_once, bare, editing, files_of, megabytes_of, serving
from tests.bench.measure import ROOT, service

pytestmark = pytest.mark.slow

SESSIONS, DELTAS, SPACING = 20, 50, 2


@pytest.mark.slow(seconds=20)
async def test_twenty_sessions_at_once_are_each_given_their_own_text(tmp_path: Path) -> None:
    """R1.89: through `daiku serve` and the language server; connections, files and memory come back."""
    with service() as base:
        address = f"{base}/tagged/{DELTAS}/{SPACING}/v1"
        async with bare(address) as floor:
            await at_once(floor, SESSIONS, DELTAS)
        async with (
            serving(address, tmp_path / "serve") as served,
            editing(address, tmp_path / "lsp") as edited,
        ):
            for front in (served, edited):
                await at_once(front, SESSIONS, DELTAS)
                memory, files = megabytes_of(front.pid), files_of(front.pid)
                for _ in range(3):
                    await at_once(front, SESSIONS, DELTAS)
                assert megabytes_of(front.pid) - memory < 20
                assert files_of(front.pid) <= files + 10


async def test_locust_finds_no_fault(tmp_path: Path) -> None:
    """R1.89: the load file against a real server for a few seconds."""
    with service() as base:
        async with serving(f"{base}/tagged/{DELTAS}/{SPACING}/v1", tmp_path) as front:
            await at_once(front, SESSIONS, DELTAS)  # connections to the model are kept for the next runs
            files = files_of(front.pid)
            token = front.client.headers["authorization"].removeprefix("Bearer ")
            command = [sys.executable, "-m", "locust", "-f", str(ROOT / "tests/load/locust_serve.py"), "--headless",
                       "--host", str(front.client.base_url).rstrip("/"), "-u", "20", "-r", "20", "-t", "5s", "--stop-timeout", "20",
                       "--json", "--skip-log-setup"]  # fmt: skip
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=tmp_path, env={**os.environ, "DAIKU_SERVE_TOKEN": token},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            told = {each["name"]: each for each in json.loads(done.stdout[done.stdout.index("[") :])}
            assert told["run"]["num_requests"] >= 20
            assert all(each["num_failures"] == 0 for each in told.values()), told
            async with asyncio.timeout(20):
                while files_of(front.pid) > files + 10:
                    await asyncio.sleep(0.1)
