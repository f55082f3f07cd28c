"""Agent frameworks beside ours: each runs the same turns against the same service, in a venv of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import ours
from tests.bench.measure import OWN_CORE, ROOT, Row, cpu, pin, service

PACKAGES = ("agno>=3", "pydantic-ai-slim[openai]>=2", "openai-agents>=0.20", "openai>=3")
PEERS = ("agno", "pydantic_ai", "openai_agents")
TURNS = 20


def environment() -> Path:
    """The Python that has the peers, made when it is not there; outside the tree."""
    cache = Path(os.environ.get("DAIKU_DEV_CACHE") or Path.home() / ".cache" / "daiku-dev")
    folder = cache / "bench-peers"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (folder / ".ready").touch()
    return python


def against(*, quick: bool) -> list[Row]:
    """A row for each peer, in ms of CPU a turn; the goal holds for the best of them. Ours is measured
    beside each peer again, and of all rounds the quickest counts: neither pays for a busy moment."""
    rounds = 3 if quick else 10
    with service() as base, tempfile.TemporaryDirectory() as folder:
        address = f"{base}/turns/{TURNS}/v1"
        return asyncio.run(_against(address, Path(folder), rounds))


async def _against(address: str, folder: Path, rounds: int) -> list[Row]:
    app = ours.make_app(address, folder)
    await ours.turns(app)
    rows = list[Row]()
    for name in PEERS:
        each = min(_peer(name, address, rounds))
        own = min([await cpu(lambda: ours.turns(app)) for _ in range(rounds)])
        scale = 1000 / TURNS
        rows.append(
            Row("turn of the loop", each * scale, own * scale, 0.25, "ms CPU", None, name.replace("_", "-"))
        )
    await app.aclose()
    return rows


def _peer(name: str, address: str, rounds: int) -> list[float]:
    script = Path(__file__).with_name(f"turns_{name}.py")
    command = [str(environment()), str(script), address, str(rounds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        pin(OWN_CORE, process.pid)
        said, _ = process.communicate()
    assert process.returncode == 0, name
    return [float(line) for line in said.split()]
