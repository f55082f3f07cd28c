"""A damaged database is moved aside, rebuilt from what can be read, and filled up from its backup."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import RunStarted
from daiku.store.salvage import back_up, is_due, list_backups
from daiku.store.sqlite import DatabaseFault, connect, get_suspect_mark
from daiku.trace.journal import Journal

PAGE = 4096
SESSIONS = 12
CHUNKS = 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of some sessions, closed, all of it in the main file."""
    return write_journal(tmp_path / "daiku.db", CHUNKS)


def write_journal(path: Path, chunks: int) -> Path:
    """Write the same pages every time: what a cut takes away depends on the order of the ids."""
    journal, ids = Journal(path), random.Random(7)
    for number in range(SESSIONS):
        session = f"ses_{ids.randbytes(8).hex()}"
        with patch("daiku.trace.journal.long_id", return_value=session):
            journal.new_session(f"session {number}", "/w")
        writer = journal.writer(session)
        for index in range(chunks):
            writer.write("run", None, "agent", [RunStarted(prompt=f"{index} " + "words " * 40)])
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def read_all(path: Path) -> dict[str, list[int]]:
    """The sessions and the numbers of their chunks, as any front reads them; repairs as opening does."""
    journal = Journal(path)
    try:
        found: dict[str, list[int]] = {}
        for session in journal.list_sessions(limit=100):
            try:
                chunks = journal.chunks(session.session_id)
            except DatabaseFault:
                raise
            except DaikuError:  # a record whose text is no event: this conversation alone says so
                chunks = []
            found[session.session_id] = [chunk.seq for chunk in chunks]
        return found
    finally:
        journal.close()


def read_repaired(path: Path) -> dict[str, list[int]]:
    """Read everything; after damage that shows only while reading, once more as a new process would."""
    try:
        return read_all(path)
    except DaikuError:
        return read_all(path)


def write_noise(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(random.Random(start).randbytes(length))


def test_a_journal_without_its_last_pages_keeps_every_session_that_was_readable(path: Path) -> None:
    before = read_all(path)
    os.truncate(path, path.stat().st_size - 3 * PAGE)
    after = read_repaired(path)
    assert len(after) >= SESSIONS - 1
    assert sum(map(len, after.values())) > 0.8 * sum(map(len, before.values()))
    for session, chunks in after.items():
        assert chunks == before[session][: len(chunks)], "a session is complete or a prefix"


def test_a_damaged_page_costs_only_what_was_on_it(tmp_path: Path) -> None:
    """Any page that holds chunks, but for the root, through which all others are found."""
    whole = write_journal(tmp_path / "whole.db", 10)
    before = read_all(whole)
    with closing(sqlite3.connect(whole)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").fetchone()[0]
    content = whole.read_bytes()
    pages = [n for n in range(len(content) // PAGE) if b"words words" in content[n * PAGE : (n + 1) * PAGE]]
    assert len(pages) > 20
    for page in pages:
        if page == root - 1:
            continue
        path = tmp_path / str(page) / "daiku.db"
        path.parent.mkdir()
        path.write_bytes(content)
        write_noise(path, page * PAGE, PAGE)
        after = read_repaired(path)
        for session, chunks in after.items():
            assert chunks == before[session][: len(chunks)]
        assert sum(map(len, after.values())) > 0.6 * sum(map(len, before.values()))
        assert list(path.parent.glob("daiku.db.damaged-*")), "the damaged file is kept"


def test_a_record_whose_text_is_damaged_comes_from_the_backup(path: Path) -> None:
    """SQLite reads such a record without an error; only what is no UTF-8 shows that it is damaged."""
    before = read_all(path)
    assert back_up(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"words words words")
    content[at : at + 8] = b"\xff\x01" * 4
    path.write_bytes(content)
    assert read_repaired(path) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: write_noise(path, 0, PAGE),
        lambda path: write_noise(path, 0, 100),
        lambda path: write_noise(path, path.stat().st_size // 2, path.stat().st_size // 2),
        lambda path: os.truncate(path, 1),
        lambda path: os.truncate(path, 0),
        lambda path: os.truncate(path, PAGE // 2),
    ],
    ids=["first page", "header", "second half", "one byte", "empty", "half a page"],
)
def test_what_cannot_be_read_comes_from_the_backup(path: Path, damage: Callable[[Path], None]) -> None:
    before = read_all(path)
    assert back_up(path)
    (path.parent / "locks").mkdir(exist_ok=True)
    (path.parent / "locks" / "x.lock").touch()
    damage(path)
    assert read_repaired(path) == before


@pytest.mark.parametrize("offset", [4100, 4096, 4101, 4103, 4104, 4108, 5000])
def test_a_flipped_byte_is_repaired_or_told(path: Path, offset: int) -> None:
    before = read_all(path)
    back_up(path)
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x55]))
    assert read_repaired(path).keys() >= before.keys()


@pytest.mark.parametrize("damage", [b"\xc9", b"?"])
def test_a_damaged_name_in_the_schema_comes_from_the_backup(path: Path, damage: bytes) -> None:
    """A23.9."""
    before = read_all(path)
    assert back_up(path)
    content = path.read_bytes()
    renamed = content.replace(b"copied_runs_of", b"copied_runs" + damage + b"of")
    path.write_bytes(renamed.replace(b"CREATE INDEX copied", b"CREATE INDEY copied"))
    assert path.read_bytes() != content
    assert read_repaired(path) == before


def test_a_damaged_status_is_told_once_and_then_read_as_interrupted(path: Path) -> None:
    """A23.9."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE sessions SET status = 'idlf' WHERE title = 'session 3'")
    with pytest.raises(DatabaseFault, match="damaged"):
        read_all(path)
    for _ in range(3):
        journal = Journal(path)
        found = {session.title: session.status for session in journal.list_sessions()}
        journal.close()
        assert found == {f"session {n}": "interrupted" if n == 3 else "idle" for n in range(SESSIONS)}


def test_a_row_deleted_since_the_backup_does_not_come_back(path: Path) -> None:
    back_up(path)
    journal = Journal(path)
    gone = journal.list_sessions()[0].session_id
    journal.delete_session(gone)
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    get_suspect_mark(path).touch()
    assert gone not in read_all(path)


def test_a_sound_file_that_is_suspected_is_left_alone(path: Path) -> None:
    before = read_all(path)
    get_suspect_mark(path).touch()
    assert read_all(path) == before
    assert not get_suspect_mark(path).exists()
    assert not list(path.parent.glob("daiku.db.damaged-*"))


def test_an_empty_file_without_a_backup_is_told(tmp_path: Path) -> None:
    path = tmp_path / "daiku.db"
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "x.lock").touch()
    path.touch()
    with pytest.raises(UsageError):
        connect(path, "CREATE TABLE IF NOT EXISTS t(a)")


def test_a_damaged_file_never_replaces_a_backup(path: Path) -> None:
    for _ in range(2):
        assert back_up(path)
    sound = [backup.read_bytes() for backup in list_backups(path)]
    write_noise(path, 3 * PAGE, 5 * PAGE)
    back_up(path)
    assert [backup.read_bytes() for backup in list_backups(path)] == sound
    assert not [p for p in path.parent.iterdir() if p.name.endswith(str(os.getpid()))], "no draft is left"


def test_backups_rotate_and_are_private(path: Path) -> None:
    made = [back_up(path) for _ in range(3)]
    assert made[0] == made[2] != made[1]
    assert all(backup.stat().st_mode & 0o777 == 0o600 for backup in list_backups(path))


def test_a_backup_is_due_after_an_hour_of_changes(path: Path) -> None:
    assert is_due(path, 3600)
    backup = back_up(path)
    assert backup
    assert not is_due(path, 3600)
    os.utime(backup, (1, 1))
    assert is_due(path, 3600)


def test_the_repair_is_told_in_words(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3 * PAGE)
    get_suspect_mark(path).touch()
    journal = Journal(path)
    assert journal.recovered.id == "store.recovered_part"
    journal.close()
    again = Journal(path)
    assert not again.recovered
    again.close()


def damaged_everywhere() -> Iterator[tuple[int, int]]:
    seeded = random.Random(23)
    for _ in range(40):
        yield seeded.randrange(0, 60) * 1024, seeded.choice([1, 16, 512, 4096])


@pytest.mark.parametrize(("start", "length"), list(damaged_everywhere()))
def test_no_damage_ends_a_program_or_loses_the_file(path: Path, start: int, length: int) -> None:
    back_up(path)
    write_noise(path, start, length)
    for _ in range(3):  # each process may find one more fault
        try:
            found = read_all(path)
        except DaikuError:
            continue
        assert len(found) >= SESSIONS - 2
        return
    pytest.fail("three starts did not repair the file")


def test_a_file_that_a_run_writes_to_is_not_moved(path: Path) -> None:
    journal = Journal(path)
    session = journal.list_sessions()[0].session_id
    lock = journal.lock(session)
    write_noise(path, 0, PAGE)
    get_suspect_mark(path).touch()
    with pytest.raises(DaikuError):
        Journal(path)
    assert not list(path.parent.glob("daiku.db.damaged-*"))
    lock.release()
    journal.close()


def test_an_open_journal_refuses_runs_after_another_process_repaired_the_file(path: Path) -> None:
    back_up(path)
    idle = Journal(path)
    session = idle.list_sessions()[0].session_id
    write_noise(path, 0, PAGE)
    Journal(path).close()
    with pytest.raises(DaikuError) as caught:
        idle.lock(session)
    assert caught.value.failure.message.id == "store.replaced"
    idle.close()
