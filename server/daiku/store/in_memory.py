"""Copies in memory of SQLite files that may only be read."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path


def copy_to_memory(path: Path) -> sqlite3.Connection:
    """Return a copy of a database file with its write-ahead log; a missing file is empty. Raises OSError, sqlite3.Error.

    SQLite cannot open a write-ahead log in a folder that it may not write.
    """
    names = {entry.name for entry in path.parent.iterdir()}  # a folder that cannot be read is not empty
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with tempfile.TemporaryDirectory(prefix="daiku-") as folder:
        for name in {path.name, f"{path.name}-wal"} & names:
            shutil.copyfile(path.with_name(name), Path(folder, name))
        with closing(sqlite3.connect(Path(folder, path.name))) as source:
            source.backup(connection)
    return connection
