"""An addition to a playbook of 10,000 lessons: against one of 100, and against the bare insert of what is kept of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from daiku.domain.playbook import Delta
from daiku.playbook.store import PlaybookStore
from daiku.store.opening import open_tables
from tests.bench.measure import Row, alternate
from tests.bench.playbook_search import searches

MANY, FEW = 10_000, 100
ADDED = 100
TEXT = "Run the formatter before the tests: `npm run format`, then `npm test`; the linter fails otherwise. "
WORDS = ("format", "tests")
_BARE = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE bullets(id TEXT PRIMARY KEY, added INTEGER, section TEXT, content TEXT, keywords TEXT, time TEXT);
CREATE INDEX bullets_by_change ON bullets(added);
CREATE TABLE changes(number INTEGER PRIMARY KEY, bullet TEXT, data TEXT);
CREATE INDEX changes_of ON changes(bullet);
CREATE TABLE numbers(section TEXT PRIMARY KEY, last INTEGER);
INSERT INTO numbers VALUES('common_mistakes', 0);
"""
"""A bullet, the change that made it and the last number that was given, as whoever keeps them would: found by id, by when it
came, and by its bullet."""

_NEXT = "UPDATE numbers SET last = last + 1 WHERE section = 'common_mistakes' RETURNING last"


def playbook(*, quick: bool) -> list[Row]:
    """CPU of an addition, until it is in the file; and of searches."""
    with tempfile.TemporaryDirectory() as folder:
        added = asyncio.run(_playbook(Path(folder), 7 if quick else 21))
    return [*added, *searches(quick=quick)]


async def _playbook(folder: Path, rounds: int) -> list[Row]:
    few, full = (
        PlaybookStore(open_tables(folder / f"{n}.db", ""), "repository", "here") for n in (FEW, MANY)
    )
    _fill(few, FEW)
    _fill(full, MANY)
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.executescript(_BARE)

    async def insert() -> None:
        for _ in range(ADDED):
            now = datetime.now(UTC).isoformat()
            bare.execute("BEGIN IMMEDIATE")
            number = bare.execute(_NEXT).fetchone()[0]
            bullet = {
                "id": f"cm-{number:05d}",
                "section": "common_mistakes",
                "content": f"{TEXT}{number}",
                "keywords": WORDS,
                "time": now,
            }
            data = json.dumps({"type": "add", "status": "applied", "after": bullet, "time": now})
            row = (bullet["id"], number, bullet["section"], bullet["content"], json.dumps(WORDS), now)
            bare.execute("INSERT INTO bullets VALUES(?, ?, ?, ?, ?, ?)", row)
            bare.execute("INSERT INTO changes VALUES(?, ?, ?)", (number, bullet["id"], data))
            bare.execute("COMMIT")

    async def add_to_few() -> None:
        _fill(few, ADDED)

    async def add_to_many() -> None:
        _fill(full, ADDED)

    against_bare = await alternate(insert, add_to_many, rounds)
    against_few = await alternate(add_to_few, add_to_many, rounds)
    bare.close()
    for each in (few, full):
        each.database.close()
    return [
        against_bare.row(
            "playbook: add a bullet", 2.0, scale=1e6 / ADDED, unit="µs CPU", against="bare inserts"
        ),
        against_few.row(
            f"playbook: add to {MANY:,}", 1.2, scale=1e6 / ADDED, unit="µs CPU", against=f"to {FEW}"
        ),
    ]


def _fill(store: PlaybookStore, bullets: int) -> None:
    for number in range(bullets):
        store.apply(
            Delta(id="", type="add", section="common_mistakes", content=f"{TEXT}{number}", keywords=WORDS)
        )
