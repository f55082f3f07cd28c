"""Rotated backups of a SQLite file: verified copies by SQLite's backup API, made in a thread."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

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
