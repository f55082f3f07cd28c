"""`python -m tests.bench.repomap FOLDER …`: how much of the work on a repository its map names.

The share is of touches: one for each commit, of the last ones, and each file of code that it changed and that still
stands; tests, scripts, examples and documents are no code here. It is the part of them that falls on files that the
map names. The map itself knows nothing of git. With `--history` the log comes from another git directory.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

from daiku.models.tokens import estimate
from daiku.tools.files.mapping import build_repository_map
from daiku.workspace.disk import DiskWorkspace

_CODE = (".py", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".go", ".java", ".rs")
_NO_CODE = re.compile(
    r"(^|/)(tests?|__tests__|scripts|benchmarks?|examples?|docs|evals)/|test_|\.test\.|_test\.|\.spec\."
)
_SIGNATURE = re.compile(r" +\d+ ")
_FILE = re.compile(r"( {0,2})([^\s:]+)(:|$)")


def listed(text: str) -> list[str]:
    """The paths of the files that a map names."""
    found: list[str] = []
    folder = ""
    for line in text.split("\n"):
        if line.endswith("/"):
            folder = line
        elif not _SIGNATURE.match(line) and (name := _FILE.match(line)) is not None:
            found.append((folder if name[1] else "") + name[2])
    return found


def touches(history: Path, root: Path, commits: int) -> Counter[str]:
    """How many of the last `commits` changed each file of code that still stands in `root`."""
    command = ["git", "-C", str(history), "log", f"-{commits}", "--name-only", "--format="]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = Counter(path for path in told.split("\n") if path.endswith(_CODE) and not _NO_CODE.search(path))
    return Counter({path: count for path, count in found.items() if (root / path).is_file()})


def main() -> None:
    """Print one line for each repository and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--history", type=Path, help="a git directory; else each folder's own")
    parser.add_argument("--commits", type=int, default=400)
    parser.add_argument("--budget", type=int, nargs="+", default=[2000, 8000])
    given = parser.parse_args()
    for folder in given.folders:
        known = touches(given.history or folder, folder.resolve(), given.commits)
        for budget in given.budget:
            started = time.perf_counter()
            text = asyncio.run(build_repository_map(DiskWorkspace([folder]), (), budget))
            seconds = time.perf_counter() - started
            files = [path for path in listed(text) if (folder / path).is_file()]
            share = sum(known[path] for path in files) / max(1, known.total())
            tests = sum("test" in path.lower() for path in files)
            print(
                f"{folder.name:20} budget {budget:5} used {estimate(text):5} files {len(files):4} tests {tests:3}"
                f" touched {share:6.1%} {seconds:5.1f} s"
            )


if __name__ == "__main__":
    main()
