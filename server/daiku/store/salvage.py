"""Backups of a SQLite file, and recovery of a damaged one from its readable rows and the newest backup."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.store.lock import SessionLock, get_locks_folder

BACKUPS = 2
"""Number of backups."""


def list_backups(path: Path) -> list[Path]:
    """Return the backups of a database file, newest first."""
    paths = [Path(f"{path}.backup{n}") for n in range(1, BACKUPS + 1)]
    return sorted((p for p in paths if p.is_file()), key=lambda p: p.stat().st_mtime, reverse=True)


def is_due(path: Path, interval: float) -> bool:
    """Return True if the file changed since its latest backup, which is older than `interval` seconds."""
    latest = next(iter(list_backups(path)), None)
    if latest is None:
        return True
    backup_time = latest.stat().st_mtime
    change_time = max(_get_mtime(path), _get_mtime(Path(f"{path}-wal")))
    return change_time > backup_time and time.time() - backup_time > interval


def back_up(path: Path) -> Path | None:
    """Copy a database file over its oldest backup; None if the copy is damaged or fails."""
    existing = list_backups(path)
    free = [p for n in range(1, BACKUPS + 1) if (p := Path(f"{path}.backup{n}")) not in existing]
    target = free[0] if free else existing[-1]
    draft = Path(f"{target}.{os.getpid()}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as copy:
            source.backup(copy)
            is_sound = copy.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        if not is_sound:
            return None
        draft.replace(target)
    except (OSError, sqlite3.Error):  # a full disk, a damaged or locked file: the older backups stay
        return None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return target


def back_up_when_due(path: Path, interval: float) -> threading.Thread | None:
    """Start a backup in a daemon thread if one is due; the program's end does not wait for it."""
    if not is_due(path, interval):
        return None
    thread = threading.Thread(target=back_up, args=(path,), name="daiku-backup", daemon=True)
    thread.start()
    return thread


def _get_mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


SIDE_FILES = ("", "-wal", "-shm")
"""Suffixes of the files that make up one SQLite database in WAL mode."""
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of damaged pages; the second one is a name in the schema that is not UTF-8."""
_HEADER = 100
"""Length in bytes of a SQLite file's header."""
_LOCK_SECONDS = 60.0
"""Time in seconds to wait for another process that repairs the same file."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """Result of a repair: the damaged file that was kept, and how much of it is in the new one."""

    damaged: Path
    rows: int
    """Rows that the new file contains."""
    backup: bool
    """True if rows came from a backup because the damaged file had lost them."""
    complete: bool
    """True if every row of the damaged file could be read."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table: its name, its number of columns, and its primary key columns; empty for a rowid table."""

    name: str
    columns: int
    key: tuple[str, ...]


def repair(path: Path) -> Recovery | None:
    """Replace a damaged database file by a rebuilt one; None if it is sound or was repaired meanwhile.

    The damaged file is renamed, never deleted. Raises OSError if the folder cannot be written,
    BlockingIOError if another process is writing to the file.
    """
    lock = SessionLock(Path(f"{path}.repair"))
    end = time.monotonic() + _LOCK_SECONDS
    while not lock.acquire():
        if time.monotonic() > end:
            raise TimeoutError(f"another process has been repairing {path} for a minute")
        time.sleep(0.05)
    try:
        if not is_sound(path):
            if any(not SessionLock(lock).is_free() for lock in get_locks_folder(path).glob("*.lock")):
                raise BlockingIOError(f"a run is writing to {path}")
            return _rebuild_file(path)
        return None
    finally:
        lock.release()


def is_sound(path: Path) -> bool:
    """Return True if SQLite's own check finds no damage in the file, and every row can be decoded."""
    if path.stat().st_size < _HEADER:
        return False
    try:
        with closing(sqlite3.connect(path)) as db:
            if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                return False
            for table in _list_tables(db):
                for _ in db.execute(f'SELECT * FROM "{table.name}"'):  # noqa: S608  # names of the schema
                    pass
    except _UNREADABLE:
        return False
    return True


def _rebuild_file(path: Path) -> Recovery:
    backup = next(iter(list_backups(path)), None)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".repair-") as folder:
        copy = _copy_padded(path, Path(folder) / "damaged.db")
        target = Path(folder) / "rebuilt.db"
        os.close(os.open(target, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(target, isolation_level=None)) as new:
            recovery = _fill(new, copy, backup, _name_aside(path))
            new.execute("PRAGMA journal_mode=WAL")
        for suffix in SIDE_FILES:
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").replace(f"{recovery.damaged}{suffix}")
        target.replace(path)
    return recovery


def _name_aside(path: Path) -> Path:
    """Return a free name next to `path` for the damaged file."""
    stem = f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (Path(stem if n == 0 else f"{stem}-{n}") for n in range(1000))
    return next(name for name in names if not name.exists())


def _copy_padded(path: Path, copy: Path) -> Path:
    """Copy the database and its log. A file that lost its end is padded, so that SQLite reads what is left."""
    for suffix in SIDE_FILES[:2]:
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    with copy.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) == _HEADER:
        page = int.from_bytes(header[16:18], "big")
        expected = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
        if copy.stat().st_size < expected <= (1 << 40):
            os.truncate(copy, expected)
    return copy


def _fill(new: sqlite3.Connection, copy: Path, backup: Path | None, aside: Path) -> Recovery:
    """Copy the schema and the rows into `new`: first those of the damaged copy, then lost ones from the backup."""
    count, complete, used = 0, True, False
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(backup or ":memory:")) as saved:
        schema = _read_schema(old)
        if not schema:
            complete, schema = False, _read_schema(saved)
        new.execute("BEGIN")
        for statement in schema:
            new.execute(statement)
        keys: set[str] = set()
        for table in _list_tables(new):
            lost: set[object] = set() if _is_table_sound(old, table.name) else {table.name}
            for row in _read_table(old, table, keys, lost):
                count += _insert(new, table, row)
                if len(table.key) < 2 and isinstance(row[0], str):
                    keys.add(row[0])
            complete = complete and not lost
            for row in _read_table(saved, table, keys, set()) if lost else ():
                if table.name in lost or row[0] in lost:
                    inserted = _insert(new, table, row)
                    count, used = count + inserted, used or inserted > 0
        new.execute("COMMIT")
    return Recovery(aside, count, used, complete)


def _read_schema(db: sqlite3.Connection) -> list[str]:
    """Return the statements that create tables and indexes, without derived search indexes."""
    try:
        rows: list[tuple[str, str]] = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            " AND name NOT LIKE '%!_index!_%' ESCAPE '!' AND name NOT LIKE '%!_index%' ESCAPE '!'"
            " ORDER BY type DESC, rowid"
        ).fetchall()
    except _UNREADABLE:
        return []
    return [sql for _, sql in rows if sql.upper().startswith("CREATE ") and " VIRTUAL " not in sql.upper()]


def _list_tables(db: sqlite3.Connection) -> list[_Table]:
    """Return the tables of a sound database, those with a simple key first: their keys name groups of others."""
    tables: list[_Table] = []
    for _, name, kind, _, without_rowid, _ in db.execute("PRAGMA main.table_list").fetchall():
        if kind != "table" or name.startswith("sqlite_"):
            continue
        columns = db.execute(f'PRAGMA table_info("{name}")').fetchall()
        keys = sorted((c[5], c[1]) for c in columns if c[5])
        tables.append(
            _Table(name, len(columns), tuple(column for _, column in keys) if without_rowid else ())
        )
    return sorted(tables, key=lambda t: (len(t.key) > 1, t.name))


def _is_table_sound(db: sqlite3.Connection, name: str) -> bool:
    """Return True if SQLite finds no damage in the table: a wrong pointer may hide rows silently."""
    try:
        return db.execute(f"PRAGMA quick_check('{name}')").fetchall() == [("ok",)] and _has_table(db, name)
    except _UNREADABLE:
        return False


def _has_table(db: sqlite3.Connection, name: str) -> bool:
    try:
        # No row is read: a damaged first page would make the whole table seem lost.
        db.execute(f'SELECT 1 FROM "{name}" LIMIT 0').fetchone()  # noqa: S608  # names of the schema
    except _UNREADABLE:
        return False
    return True


def _insert(new: sqlite3.Connection, table: _Table, values: tuple[object, ...]) -> int:
    """Insert a row if it fits the table's types and is not there yet; return the number of rows inserted."""
    if len(values) != table.columns:
        return 0
    try:
        marks = ", ".join("?" * table.columns)
        return new.execute(
            f'INSERT OR IGNORE INTO "{table.name}" VALUES({marks})', values
        ).rowcount  # names of the schema
    except _UNREADABLE:
        return 0


def _read_table(
    db: sqlite3.Connection, table: _Table, keys: set[str], lost: set[object]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows that can be read; add to `lost` the table, or the groups of it that are not complete.

    A table with a composite key is a sequence of groups (the chunks of one session). The rows of a group before
    the first unreadable one are read, so that a session is complete or a prefix. Other tables are read from both ends.
    """
    if not _has_table(db, table.name):
        return
    if len(table.key) > 1:
        rest = ", ".join(f'"{column}"' for column in table.key[1:])
        sql = f'SELECT * FROM "{table.name}" WHERE "{table.key[0]}" = ? ORDER BY {rest}'  # noqa: S608  # names of the schema
        for group in _list_groups(db, table, keys, lost):
            yield from _read_rows(db, sql, (group,), partial(lost.add, group))
        return
    sql = f'SELECT * FROM "{table.name}" ORDER BY {table.key[0] if table.key else "rowid"}'  # noqa: S608  # names of the schema
    yield from _read_rows(db, sql, (), partial(lost.add, table.name))
    if table.name in lost:
        yield from _read_rows(db, f"{sql} DESC", (), partial(lost.add, table.name))


def _read_rows(
    db: sqlite3.Connection, sql: str, values: tuple[object, ...], on_damage: Callable[[], object]
) -> Iterator[tuple[object, ...]]:
    try:
        yield from db.execute(sql, values)
    except _UNREADABLE:
        on_damage()


def _list_groups(db: sqlite3.Connection, table: _Table, keys: set[str], lost: set[object]) -> list[object]:
    """Return the values of the first key column, from both ends of the index and from other tables."""
    column = f'"{table.key[0]}"'
    groups: dict[object, None] = {}
    for function, sign in (("MIN", ">"), ("MAX", "<")):
        value: object = None
        while True:
            where = "" if value is None else f"WHERE {column} {sign} ?"
            sql = f'SELECT {function}({column}) FROM "{table.name}" {where}'  # noqa: S608  # names of the schema
            try:
                value = db.execute(sql, () if value is None else (value,)).fetchone()[0]
            except _UNREADABLE:
                lost.add(table.name)
                break
            if value is None:
                return list(groups)  # the walk reached the other end
            groups[value] = None
    return [*groups, *sorted(keys - groups.keys())]
