"""A project, a home and things that are nobody's business, outside the folders that the sandbox covers anyway."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

CANARY = "CANARY-7f3a"


@dataclass(frozen=True)
class Ground:
    """`root` is the workspace; `home` the person's; `other` a folder of somebody else."""

    base: Path
    root: Path
    home: Path
    other: Path

    def git(self, *args: str, at: Path | None = None) -> str:
        """Git as the person runs it, in the workspace or in `at`."""
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *who, *args], cwd=at or self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


@contextmanager
def ground() -> Generator[Ground]:
    """A place below none of the temporary folders: a sandbox that shows an empty one would hide its holes."""
    above = next(f for f in (ROOT.parent, Path.home()) if os.access(f, os.W_OK))
    with tempfile.TemporaryDirectory(prefix=".daiku-attacks-", dir=above) as folder:
        base = Path(folder).resolve()
        places = Ground(base, base / "project", base / "home", base / "other")
        for place in (places.root, places.home, places.other):
            place.mkdir()
        (places.root / "a.txt").write_text("harmless\n")
        (places.other / "private.txt").write_text(f"{CANARY}\n")
        yield places
