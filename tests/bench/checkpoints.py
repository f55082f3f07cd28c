"""A checkpoint of 50 touched files in a repository of 100,000: its time against 100 ms, its room against their bytes."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from daiku.domain.work.patches import FileChange, Patch
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from tests.bench.measure import Row

FILES, TOUCHED, FOLDERS = 100_000, 50, 500
LIMIT_MS = 100.0


def checkpoints(*, quick: bool) -> list[Row]:
    """Each round touches the same 50 files anew, takes what they were, and has them changed."""
    place = Path(tempfile.mkdtemp(prefix="daiku-bench-"))
    try:
        root, home = place / "repository", place / "home"
        names = _repository(root, FILES // 10 if quick else FILES)
        seconds, kept, touched = asyncio.run(_rounds(root, home, names, 5 if quick else 15))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    files = FILES // 10 if quick else FILES
    return [
        Row(
            f"checkpoint, {TOUCHED} of {files:,} files",
            LIMIT_MS,
            median(seconds) * 1000,
            1.0,
            "ms",
            against="a limit of 100 ms",
        ),
        Row("checkpoint, on disk", touched / 1000, kept / 1000, 2.0, "kB", against="the touched bytes"),
    ]


def _repository(root: Path, files: int) -> list[str]:
    for folder in range(FOLDERS):
        (root / f"d{folder}").mkdir(parents=True)
    for number in range(files):
        (root / f"d{number % FOLDERS}" / f"f{number}.py").write_bytes(b"x = %d\n" % number)
    names = [f"d{number}/touched.py" for number in range(TOUCHED)]
    for name in names:
        (root / name).write_bytes(_text(b""))
    return names


def _text(tail: bytes) -> bytes:
    """About 6 kB that hardly can be compressed, so that the room is not flattered."""
    return os.urandom(3000).hex().encode() + tail


async def _rounds(root: Path, home: Path, names: list[str], rounds: int) -> tuple[list[float], int, int]:
    """Seconds of each checkpoint; bytes that all of them keep; bytes that were touched."""
    workspace = DiskWorkspace((root,))
    store = CheckpointStore(home, workspace)
    seconds: list[float] = []
    touched = 0
    for number in range(rounds):
        olds = {name: (root / name).read_text() for name in names}
        new = {name: _text(b"%d\n" % number).decode() for name in names}
        changes = [FileChange(path=n, kind="edit", old=olds[n], new=new[n]) for n in names]
        began = perf_counter()
        await store.take("s", "r", names, Patch(files=tuple(changes)))
        seconds.append(perf_counter() - began)
        await workspace.apply(Patch(files=tuple(changes)), "bench")
        touched += sum(len(text) for text in olds.values())
    kept = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return seconds, kept, touched
