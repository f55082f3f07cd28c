"""Folders for copies of projects below Daiku's home: locked while in use, and swept after a crash."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.store.lock import SessionLock


@dataclass(frozen=True, slots=True)
class CopyFolder:
    """The folder of an evaluation's copies, locked while it runs."""

    path: Path
    lock: SessionLock


def open_copy_folder(above: Path, name: str) -> CopyFolder:
    """Create a locked folder `name` below `above`, and delete those of ended processes. Raises OSError."""
    above.mkdir(parents=True, exist_ok=True, mode=0o700)
    sweep_copy_folders(above)
    lock = SessionLock(above / f"{name}.lock")
    lock.acquire()
    folder = above / name
    folder.mkdir(mode=0o700)
    return CopyFolder(folder, lock)


def sweep_copy_folders(above: Path) -> None:
    """Delete the folders below `above` whose process has ended; failures are retried the next time."""
    for left in above.glob("*.lock"):
        lock = SessionLock(left)
        with suppress(OSError):
            if lock.acquire():
                delete_folder(left.with_suffix(""))
                lock.release()
                left.unlink(missing_ok=True)


def remove_trial_data(home: Path) -> None:
    """Delete data of lesson trials from earlier versions, unless a process still uses it."""
    sweep_copy_folders(home / "trials")
    with suppress(OSError):
        delete_folder(home / "starts")
    with suppress(OSError):
        (home / "trials").rmdir()


def delete_folder(folder: Path) -> None:
    """Delete a folder, even if it contains folders without write permission. Raises OSError."""
    shutil.rmtree(folder, ignore_errors=True)
    for above, inner, _ in os.walk(folder):
        for name in inner:
            path = Path(above) / name
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def close_copy_folder(copies: CopyFolder, *, keep: bool) -> None:
    """Delete the copies, or keep them for the user; release the lock."""
    with suppress(OSError):
        if not keep:
            delete_folder(copies.path)
    with suppress(OSError):
        copies.path.with_suffix(".lock").unlink()
    copies.lock.release()


# ---- files of a copy


def clear_path(folder: Path, name: str) -> Path:
    """Return the path of `name` inside `folder`, with nothing there and real parent folders.

    Raises OSError.
    """
    path, parent = folder / name, folder
    for part in Path(name).parts[:-1]:
        parent = parent / part
        if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
            parent.unlink()
        parent.mkdir(exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    return path


def write_file(folder: Path, name: str, content: bytes, mode: int) -> None:
    """Write a file inside `folder`; replace whatever is in its way. Raises OSError."""
    path = clear_path(folder, name)
    path.write_bytes(content)
    path.chmod(mode)
