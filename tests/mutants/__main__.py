"""`npm run mutants`: breaks each line of the requirements in a copy of the project and runs the test that must notice."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from tests.conftest import CORPORA, ROOT
from tests.mutants import Mutant, problem_of, read_mutants

SECONDS = 300
"""A test that takes longer has noticed: the mutant never ends."""
NOT_COPIED = shutil.ignore_patterns(
    "__pycache__", "node_modules", "dist", "out", ".git", ".vscode-test", "*.vsix"
)
FAILED, PASSED = 1, 0
"""Exit codes of pytest: a test failed, all passed. Any other means that no test decided."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutant: `caught`, `survived`, or what is wrong with the entry."""

    mutant: Mutant
    verdict: str
    seconds: float
    told: str = ""


@dataclass(slots=True)
class Copy:
    """A copy of the project in which one file at a time is broken."""

    root: Path
    clock: Iterator[int] = field(default_factory=lambda: count(int(time.time()), 2))

    def test(self, *tests: str) -> tuple[int, str]:
        """pytest's exit code and words."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")}
        env |= {"PYTHONPATH": f"{self.root / 'server'}{os.pathsep}{self.root}", "DAIKU_CORPORA": str(CORPORA)}
        try:
            done = subprocess.run(
                [*command, "--hypothesis-profile=quick", *tests],
                cwd=self.root, env=env, capture_output=True, text=True, check=False, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return FAILED, "timed out"
        return done.returncode, done.stdout + done.stderr

    @contextmanager
    def broken(self, mutant: Mutant) -> Generator[None]:
        path = self.root / mutant.file
        whole = path.read_text("utf-8")
        self._write(path, whole.replace(mutant.old, mutant.new))
        try:
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        """Each writing has a time of its own: by it Python tells whether what it compiled is out of date. What a process that
        was still reading has compiled meanwhile is gone, too."""
        path.write_text(text, "utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink(missing_ok=True)
        moment = next(self.clock)
        os.utime(path, (moment, moment))


def tried(mutant: Mutant, copy: Copy) -> Outcome:
    """The mutant's outcome in this copy, which is as before when it is known."""
    since = time.monotonic()
    if why := problem_of(mutant, copy.root):
        return Outcome(mutant, "wrong entry", 0, why)
    with copy.broken(mutant):
        code, told = copy.test(mutant.test)
    verdict = {FAILED: "caught", PASSED: "SURVIVED"}.get(code, "no test decided")
    return Outcome(mutant, verdict, time.monotonic() - since, "" if verdict == "caught" else told)


def try_all(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """The outcomes in the order of the mutants, each told when it is there."""
    with tempfile.TemporaryDirectory(prefix="daiku-mutants-") as folder:
        copies = SimpleQueue[Copy]()
        for number in range(jobs):
            root = Path(folder) / str(number) / "daiku"
            shutil.copytree(ROOT, root, ignore=NOT_COPIED, symlinks=True)
            if (ROOT / "node_modules").is_dir():
                (root / "node_modules").symlink_to(ROOT / "node_modules")
            copies.put(Copy(root))

        def one(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                outcome = tried(mutant, copy)
            finally:
                copies.put(copy)
            print(
                f"{outcome.verdict:>16}  {mutant.id:<6} {outcome.seconds:5.1f} s  {mutant.test}", flush=True
            )
            return outcome

        whole = copies.get()
        tests = dict.fromkeys(m.test for m in mutants if not problem_of(m, whole.root))
        code, told = whole.test(*tests) if tests else (PASSED, "")  # pytest runs all tests if none is named
        copies.put(whole)
        if code != PASSED:
            raise SystemExit(f"without any mutant these tests do not pass:\n{told[-6000:]}")
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutants))


def main() -> int:
    """Try the mutants that the command line names; 1 where one survives or an entry is wrong."""
    parser = argparse.ArgumentParser(prog="npm run mutants --", description=__doc__)
    parser.add_argument("--only", action="append", metavar="R1.45", help="only this line's (repeatable)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="copies that are used side by side"
    )
    given = parser.parse_args()
    mutants = [each for each in read_mutants() if given.only is None or each.id in given.only]
    if not mutants:
        raise SystemExit("there is no such mutant")
    outcomes = try_all(mutants, max(1, min(given.jobs, len(mutants))))
    missed = [each for each in outcomes if each.verdict != "caught"]
    for each in missed:
        print(
            f"\n--- {each.mutant.id} ({each.mutant.source}, {each.mutant.file}): {each.verdict}\n{each.told[-3000:]}"
        )
    lines = len({each.mutant.id for each in outcomes})
    print(f"\n{len(outcomes) - len(missed)} of {len(outcomes)} mutants caught, of {lines} lines")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
