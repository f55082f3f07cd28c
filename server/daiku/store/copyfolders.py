"""Folders for copies of projects below Daiku's home: locked while in use, swept after a kill, never written through a link."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.store.lock import SessionLock


@dataclass(frozen=True, slots=True)
class CopyFolder:
    """The folder of the copies of one evaluation, locked while the evaluation runs."""

    path: Path
    lock: SessionLock


def open_copy_folder(above: Path, name: str) -> CopyFolder:
    """A new folder `name` for copies below `above`; those of processes that are gone are taken away. Raises OSError."""
    above.mkdir(parents=True, exist_ok=True, mode=0o700)
    sweep_copy_folders(above)
    lock = SessionLock(above / f"{name}.lock")
    lock.acquire()
    folder = above / name
    folder.mkdir(mode=0o700)
    return CopyFolder(folder, lock)


def sweep_copy_folders(above: Path) -> None:
    """Take away the folders below `above` whose process is gone; what cannot be, stays for the next time."""
    for left in above.glob("*.lock"):
        lock = SessionLock(left)
        with suppress(OSError):
            if lock.acquire():
                take_away(left.with_suffix(""))
                lock.release()
                left.unlink(missing_ok=True)


def remove_trial_data(home: Path) -> None:
    """Remove what earlier versions kept below Daiku's home for trials of lessons, unless a process still uses it."""
    sweep_copy_folders(home / "trials")
    with suppress(OSError):
        take_away(home / "starts")
    with suppress(OSError):
        (home / "trials").rmdir()


def take_away(folder: Path) -> None:
    """Take a folder away, also where somebody made folders in it that may not be written. Raises OSError."""
    shutil.rmtree(folder, ignore_errors=True)
    for above, inner, _ in os.walk(folder):
        for name in inner:
            each = Path(above) / name
            if not each.is_symlink():
                each.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def close_copy_folder(copies: CopyFolder, *, keep: bool) -> None:
    """Take the copies away, or leave them to the person for good."""
    with suppress(OSError):
        if not keep:
            take_away(copies.path)
    with suppress(OSError):
        copies.path.with_suffix(".lock").unlink()
    copies.lock.release()


# ---- files of a copy


def clear_way(folder: Path, name: str) -> Path:
    """The place of `name` inside `folder`, with nothing there and real folders above it. Raises OSError."""
    path, here = folder / name, folder
    for part in Path(name).parts[:-1]:
        here = here / part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            here.unlink()
        here.mkdir(exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    return path


def put_file(folder: Path, name: str, content: bytes, mode: int) -> None:
    """Write a file inside `folder`, whatever lies in its way. Raises OSError."""
    path = clear_way(folder, name)
    path.write_bytes(content)
    path.chmod(mode)
