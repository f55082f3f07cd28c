"""Templates of a workspace that stand in place of the packaged ones: read, and checked before they are used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from daiku.dataclass import dataclass

FOLDER = Path(".daiku") / "prompts"
LARGEST = 100_000
"""Bytes of one template."""
MOST = 200
SUFFIXES = (".j2", ".txt")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a template of the workspace is not used: the file as the person names it, the line (0: the file as a
    whole), and what is wrong there."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Source:
    """One template: its text, where it stands, and how it is filled in."""

    text: str
    file: str
    literal: bool = False


def read_overrides(root: Path) -> Iterator[tuple[str, Source | Problem]]:
    """The templates below `.daiku/prompts` of `root`, by id. Links that leave the workspace are not followed."""
    if not os.path.isdir(f"{root}{os.sep}{FOLDER}"):  # noqa: PTH112  # every run looks, mostly at nothing
        return
    folder = root / FOLDER
    real_root = root.resolve()
    found = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    for path in found[:MOST]:
        name = path.relative_to(root).as_posix()
        template = path.relative_to(folder).with_suffix("").as_posix()
        try:
            real = path.resolve(strict=True)
            if not real.is_relative_to(real_root) or not real.is_file():
                yield template, Problem(name, 0, "it leads out of the workspace")
            elif real.stat().st_size > LARGEST:
                yield template, Problem(name, 0, f"it is larger than {LARGEST} bytes")
            else:
                yield template, Source(real.read_text("utf-8"), name, path.suffix == ".txt")
        except (OSError, ValueError) as error:
            yield template, Problem(name, 0, f"it cannot be read ({error})")
