"""Prints the part of the locked requirements, with hashes, that a worker needs (the package and its extras), or that the packages named as arguments need."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("work", "postgres")


def locked(root: Path, *packages: str) -> str:
    """Return the locked packages that `packages` need, or the project with its extras.

    The lock names what requires each package.
    """
    kept = {each.lower() for each in packages} or _of_the_project(root)
    lock = (root / "server" / "requirements-dev.txt").read_text("utf-8")
    blocks = {
        block.split("==", 1)[0].lower(): block
        for block in re.split(r"\n(?=[A-Za-z0-9])", lock)
        if "==" in block
    }
    while more := {name for name, block in blocks.items() if name not in kept and kept & _asked_by(block)}:
        kept |= more
    return "\n".join(blocks[name].rstrip() for name in sorted(kept & set(blocks))) + "\n"


def _of_the_project(root: Path) -> set[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in EXTRAS for each in project["optional-dependencies"][extra]),
    ]
    return {re.split(r"[\[<>=!~; ]", each, maxsplit=1)[0].lower() for each in wanted}


def _asked_by(block: str) -> set[str]:
    comments = re.findall(r"^    #(?: via)? +(\S+)", block, re.MULTILINE)
    return {name.lower() for name in comments if name != "via"}


if __name__ == "__main__":
    sys.stdout.write(locked(Path(__file__).parents[2], *sys.argv[1:]))
