"""Agent frameworks beside ours: each runs the same turns against the same service, in a venv of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.bench.measure import OWN_CORE, ROOT, Row, pin, service

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


def against(ours: float, *, quick: bool) -> list[Row]:
    """A row for each peer; `ours` in ms of CPU a turn. The goal holds for the best of them."""
    python = environment()
    rounds = 3 if quick else 10
    rows = list[Row]()
    with service() as base:
        for name in PEERS:
            script = Path(__file__).with_name(f"turns_{name}.py")
            command = [str(python), str(script), f"{base}/turns/{TURNS}/v1", str(rounds)]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
                pin(OWN_CORE, process.pid)
                said, _ = process.communicate()
            assert process.returncode == 0, name
            each = median(float(line) for line in said.split()) / TURNS * 1000
            rows.append(Row("turn of the loop", each, ours, 0.25, "ms CPU", None, name.replace("_", "-")))
    return rows
