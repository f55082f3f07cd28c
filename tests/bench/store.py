"""A step of the journal against a bare SQLite log in the same mode of synchronising."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from itertools import count
from pathlib import Path
from time import time

from daiku.domain.events import ToolResponse
from daiku.guard.rules.redact import Redactor
from daiku.trace.journal import Journal
from tests.bench.measure import Row, alternate

STEPS = 500
SECRET = "sk-bench-0123456789abcdefghij"  # what a redactor looks for costs a little


def store(*, quick: bool) -> list[Row]:
    """CPU of one durable event, until it is in the file."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_store(Path(folder), 5 if quick else 15))


async def _store(folder: Path, rounds: int) -> list[Row]:
    journal = Journal(folder / "ours.db", Redactor([SECRET]))
    writer = journal.writer(journal.new_session().session_id)
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=NORMAL")
    bare.execute("CREATE TABLE log(session, seq, time, type, data, PRIMARY KEY(session, seq)) WITHOUT ROWID")
    text = "a line of what a command said\n" * 5

    numbers = count()

    async def log() -> None:
        for number in range(STEPS):
            data = {"id": f"call_{number}", "tool": "shell/run", "ok": True, "result": text}
            row = ("ses_1", next(numbers), str(time()), "tool_response", json.dumps(data))
            bare.execute("INSERT INTO log VALUES(?,?,?,?,?)", row)

    async def own() -> None:
        for number in range(STEPS):
            event = ToolResponse(id=f"call_{number}", tool="shell/run", ok=True, result=text)
            writer.write("run_1", None, "coordinator", (event,))

    found = await alternate(log, own, rounds)
    journal.close()
    bare.close()
    return [found.row("journal step", 2.0, scale=1e6 / STEPS, unit="µs CPU", against="bare SQLite log")]
