"""What happens to a memory: many processes at once, a locked or full disk, a server that goes away, a wrong address."""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import daiku.store.sqlite as opening
from daiku import Memory
from daiku.domain.errors import DaikuError, UsageError
from tests.conftest import ROOT

ADDER = """
import asyncio, sys
from daiku import Memory

async def work():
    async with Memory(sys.argv[1]) as memory:
        for at in range(25):
            await memory.remember(f"note {at} of process {sys.argv[2]}")
            await memory.remember("said by everybody")
        print(len(await memory.recall(f"note 7 of process {sys.argv[2]}")))

asyncio.run(work())
"""


async def eight_processes(place: str) -> None:
    pipes: Any = {
        "cwd": ROOT / "server",
        "stdout": asyncio.subprocess.PIPE,
        "stderr": asyncio.subprocess.PIPE,
    }
    command = (sys.executable, "-c", ADDER, place)
    running = [await asyncio.create_subprocess_exec(*command, str(n), **pipes) for n in range(8)]
    for process in running:
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert int(out) > 0
    async with Memory(place) as memory:
        kept = [entry.text for entry in await memory.list(1000)]
        assert len(kept) == len(set(kept)) == 8 * 25 + 1
        found = [each.text for each in await memory.recall("note 7 of process 3")]
        assert "note 7 of process 3" in found[:2]  # 3 of 7 has the same words


@pytest.mark.slow
async def test_eight_processes_add_at_once_to_a_file(tmp_path: Path) -> None:
    await eight_processes(str(tmp_path / "m.db"))


@pytest.mark.slow
async def test_eight_processes_add_at_once_to_a_server(postgres: Callable[[], str]) -> None:
    """R1.76: each memory has a connection of its own."""
    await eight_processes(postgres())


async def test_what_another_process_adds_and_forgets_is_seen_at_once(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db") as one, Memory(tmp_path / "m.db") as other:
        await one.remember("first deployment")
        assert len(await one.recall("deployment")) == 1
        kept = await other.remember("second deployment")
        assert len(await one.recall("deployment")) == 2
        await other.forget(kept)
        assert len(await one.recall("deployment")) == 1


async def test_a_file_that_another_program_holds_is_a_sentence_and_no_lost_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.05)
    async with Memory(tmp_path / "m.db") as memory:
        await memory.remember("before")
        holder = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DaikuError, match="Cannot use the memory: another program holds it"):
            await memory.remember("during")
        assert len(await memory.recall("before")) == 1
        holder.execute("ROLLBACK")
        holder.close()
        assert await memory.remember("during")


async def test_the_vectors_that_an_earlier_version_kept_for_sqlite_vec_are_removed(tmp_path: Path) -> None:
    """R1.16: a file of an earlier version opens, and what is forgotten leaves no copy in its second table of vectors."""
    async with Memory(tmp_path / "m.db") as memory:
        await memory.remember("the cat sleeps")
    with closing(sqlite3.connect(tmp_path / "m.db")) as earlier, earlier:
        earlier.execute(
            "CREATE TABLE memory_floats (number INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT"
        )
        earlier.execute("INSERT INTO memory_floats VALUES (1, x'00')")
    async with Memory(tmp_path / "m.db") as memory:
        assert [each.text for each in await memory.recall("the cat")] == ["the cat sleeps"]
    with closing(sqlite3.connect(tmp_path / "m.db")) as after:
        assert after.execute("SELECT 1 FROM sqlite_schema WHERE name = 'memory_floats'").fetchall() == []


async def fill(memory: Memory) -> None:
    for at in range(200):
        await memory.remember(f"{at} " + "much text " * 500)


async def test_a_full_disk_is_a_sentence_and_what_was_kept_stays(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    await memory.remember("before")
    store: Any = memory._store
    pages = store._db.first("PRAGMA page_count")[0]
    store._db.query(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DaikuError, match="Cannot use the memory: the disk is full"):
        await fill(memory)
    assert (await memory.recall("before"))[0].text == "before"
    await memory.aclose()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.db").write_bytes(content)
    with pytest.raises(UsageError, match=r"m\.db cannot be used: its contents are damaged"):
        Memory(tmp_path / "m.db")


def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be used"):
        Memory(tmp_path / "file" / "m.db")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:geheim99@127.0.0.1:1/x",
        "postgresql://me:geheim99@/x?host=/nowhere&port=1",
        "postgresql://me:geheim99@127.0.0.1:1/x?frobnicate=1",
        "postgresql://me:geheim99@127.0.0.1:port/x",
    ],
)
async def test_a_server_out_of_reach_is_a_sentence_without_the_password(url: str) -> None:
    memory = Memory(url)
    with pytest.raises(UsageError) as wrong:
        await memory.remember("x")
    said = f"{wrong.value.failure.message} {wrong.value.failure.hint}"
    assert "PostgreSQL at" in said
    assert "geheim99" not in said
    assert "\n" not in said
    await memory.aclose()


def test_without_psycopg_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match="psycopg") as wrong:
        Memory("postgresql://h/x")
    assert "daiku[postgres]" in wrong.value.failure.hint


@pytest.mark.slow
async def test_a_server_that_goes_away_in_the_middle_is_a_sentence_and_is_used_again(
    postgres: Callable[[], str],
) -> None:
    """R1.76: one connection a memory, opened anew where it was lost."""
    url = postgres()
    psycopg: Any = importlib.import_module("psycopg")
    async with Memory(url) as memory:
        await memory.remember("before the fall")
        await memory.recall("fall")
        with psycopg.connect(url, autocommit=True) as other:
            held = asyncio.create_task(memory._store._db.query("SELECT pg_sleep(30)"))  # pyright: ignore[reportAttributeAccessIssue]  # of this store
            await asyncio.sleep(0.2)
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
            other.execute(end)
        with pytest.raises(DaikuError, match=r"PostgreSQL at .* failed"):
            await held
        assert (await memory.recall("fall"))[0].text == "before the fall"


@pytest.mark.slow
async def test_a_database_with_odd_rights_and_texts_is_searched_all_the_same(
    postgres: Callable[[], str],
) -> None:
    async with Memory(postgres()) as memory:
        odd = "100% {sure} 'quoted' \"twice\" \\ %s %(x)s $$ -- ; DROP TABLE x 東京"
        await memory.remember(odd)
        await memory.remember("a\x00b \ud800")
        assert (await memory.recall("sure 東京 quoted twice"))[0].text == odd
        assert (await memory.search("%s drop"))[0].text == odd
