"""The person's home folders, and whether a place lies in a folder."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path


def within(place: Path, folder: Path) -> bool:
    """True where `place` is `folder` or lies in it, by their names."""
    # Asked thousands of times for each command: as texts, `Path.parents` makes a path of every folder above.
    here, above = str(place), str(folder)
    return here == above or here.startswith(above if above.endswith("/") else f"{above}/")


def homes() -> tuple[Path, ...]:
    """The person's home as the environment and as the system know it, real paths, none of them `/`."""
    found = [Path.home()]
    with suppress(KeyError):
        found.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(dict.fromkeys(h for p in found if (h := p.resolve()) != Path("/") and h.is_dir()))
