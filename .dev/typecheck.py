"""Checks the types of every Python file that could be wrong since it was last found right.

A file's types follow from its own text and from that of everything it imports, so both together are its key.
Usage: typecheck.py FILE-OF-KEYS BASEDPYRIGHT-ARGUMENT... -- PATH...
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = (ROOT, ROOT / "server", ROOT / ".dev")
"""Where an import is looked for, as `extraPaths` in pyproject.toml and the scripts' own folder say."""
FOR_ALL = ("pyproject.toml", "server/requirements-dev.txt")
"""What every file's types depend on: how they are checked, and the libraries."""
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]+))", re.MULTILINE
)


@cache
def text_of(path: Path) -> str:
    """The text of a file; empty when there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@cache
def found(module: str) -> tuple[Path, ...]:
    """The files that a dotted name stands for, with those of the packages around it; none for a library."""
    parts = module.split(".")
    starts = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    ends = [*(f"{start}/__init__.py" for start in starts), f"{starts[-1]}.py", f"{starts[-1]}.pyi"]
    return tuple(path for place in PLACES for end in ends if (path := place / end).is_file())


@cache
def imported(path: Path) -> frozenset[Path]:
    """The project's own files that a file imports itself."""
    files: set[Path] = set()
    for base, names, plain in IMPORT.findall(text_of(path)):
        listed = re.sub(r"#[^\n]*|[()]", "", names or plain).split(",")
        words = [name.split()[0] for name in listed if name.strip()]
        for module in [base, *(f"{base}.{word}" for word in words)] if base else words:
            files.update(found(module))
    return frozenset(files)


def everything_behind(path: Path) -> set[Path]:
    """A file and all that it imports, through others too."""
    seen: set[Path] = set()
    waiting = {path}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        waiting |= imported(one) - seen
    return seen


@cache
def digest(path: Path) -> str:
    """A file's name and content in a few characters."""
    return hashlib.sha256(f"{path}\0{text_of(path)}".encode()).hexdigest()[:16]


def key(path: Path, common: str) -> str:
    """What a file's types follow from."""
    parts = [common, str(path), *sorted(digest(one) for one in everything_behind(path))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def main(arguments: list[str]) -> int:
    """What basedpyright ends with; 0 without asking it when nothing is new."""
    memory, cut = Path(arguments[0]), arguments.index("--")
    command = arguments[1:cut]
    paths = [ROOT / name for name in arguments[cut + 1 :]]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    common = "\0".join([*command, *(text_of(ROOT / name) for name in FOR_ALL), text_of(Path(__file__))])
    keys = {file: key(file, common) for file in files}
    right: set[str] = set(json.loads(text_of(memory) or "[]"))
    new = [file for file in files if keys[file] not in right]
    if not new:
        return 0
    done = subprocess.run([*command, *map(str, new)], cwd=ROOT, check=False)
    if done.returncode == 0:
        memory.write_text(json.dumps(sorted({*keys.values()} | (right if len(right) < 5000 else set()))))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
