"""What it adds to a run's start that it is told lessons: with 10,000 bullets, and with none."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import SandboxSettings
from daiku.domain.playbook import Delta
from daiku.models.table import LLMSettings
from daiku.playbook.repository import open_playbooks
from daiku.run.request import RunRequest
from daiku.settings.config import Config, PlaybookSettings
from daiku.workspace.disk import DiskWorkspace
from tests.bench.measure import Rounds, Row

BULLETS = 10_000
MOST, LEAST = 15.0, 1.0
"""Milliseconds that may be added with so many bullets, and with none."""
WORDS = [
    "tests",
    "lint",
    "make",
    "build",
    "server",
    "panel",
    "parser",
    "tabs",
    "names",
    "types",
    "errors",
    "retry",
    "cache",
    "paths",
    "quotes",
]


def lessons(*, quick: bool) -> list[Row]:
    """CPU from the request to the run's first event, beyond that of a run that reads no playbook."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_lessons(Path(folder), 9 if quick else 31))


async def _lessons(folder: Path, rounds: int) -> list[Row]:
    without = _app(folder / "without", enabled=False)
    empty, full = _app(folder / "empty"), _app(folder / "full")
    _fill(full)
    assert await _start(full) > 0
    rows = [
        _row(f"start with {BULLETS:,} bullets", MOST, await _measured(without, full, rounds)),
        _row("start with no bullet", LEAST, await _measured(without, empty, rounds)),
    ]
    for app in (without, empty, full):
        await app.aclose()
    return rows


def _row(what: str, most: float, found: Rounds) -> Row:
    added = (median(found.ours) - median(found.floor)) * 1000
    return Row(what, most, max(0.0, added), 1.0, "ms CPU added", against=f"{most:g} ms at most")


async def _measured(without: App, told: App, rounds: int) -> Rounds:
    """Seconds of each, by turns."""
    floor, ours = list[float](), list[float]()
    for number in range(rounds + 2):
        for app, into in ((without, floor), (told, ours)) if number % 2 else ((told, ours), (without, floor)):
            into.append(await _start(app))
    return Rounds(tuple(floor[2:]), tuple(ours[2:]))


async def _start(app: App) -> float:
    """Seconds of CPU from the request to the run's first event: it waits for nothing but a file that is in memory."""
    began, first = process_time(), list[float]()

    def listen(chunk: Chunk) -> None:
        if chunk.type == "run_started":
            first.append(process_time())

    await app.runs.run(
        RunRequest("Run the tests of the parser and mend what is wrong with its names"), listen
    )
    return first[0] - began


def _app(folder: Path, *, enabled: bool = True) -> App:
    project = folder / "project"
    project.mkdir(parents=True)
    script = folder / "script.jsonl"
    script.write_text(json.dumps({"text": "Done."}))
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"),
        playbook=PlaybookSettings(enabled=enabled, learn="off"),  # that comes after a run
        sandbox=SandboxSettings(mode="off"),
    )
    return build(config, workspace=DiskWorkspace((project,)), home=folder / "home")


def _fill(app: App) -> None:
    assert app.stores is not None
    database = app.stores.database
    store = open_playbooks(database, app.workspace.roots).repository
    assert store is not None
    store.revision()  # the tables are made outside the transaction
    with database.transaction():
        for n in range(BULLETS):
            said = " ".join((WORDS[n % 15], WORDS[n // 15 % 15], f"of part {n}", WORDS[n // 225 % 15]))
            store.apply(Delta(id="", type="add", section="build_and_test_commands", content=said))
