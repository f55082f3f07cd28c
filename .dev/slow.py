"""Writes tests/slow.txt from the report of the last `npm test`: the tests that the fast loop leaves out for the time they take."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "slow.txt"
SECONDS = 0.06
"""A test of which one case takes so long."""


def tests_of(report: Path) -> dict[str, float]:
    """The seconds that the longest case of each test took, by file and name."""
    found: dict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):
        file = f"{case.get('classname', '').replace('.', '/')}.py"
        test = f"{file}::{case.get('name', '').partition('[')[0]}"
        found[test] = max(found[test], float(case.get("time", 0)))
    return found


def stays(test: str) -> bool:
    """Tests of the repository as a whole (tests/test_*.py) stay in the fast loop: whatever is changed can break them."""
    return test.count("/") == 1 or not (ROOT / test.partition("::")[0]).exists()


def main() -> int:
    """Write the list anew."""
    report = Path(os.environ["DAIKU_DEV_REPORTS"]) / "python.xml"
    if not report.exists():
        sys.stderr.write("There is no report yet: run `npm test` first.\n")
        return 1
    slow = sorted(
        test for test, seconds in tests_of(report).items() if seconds >= SECONDS and not stays(test)
    )
    LIST.write_text("".join(f"{test}\n" for test in slow))
    sys.stderr.write(f"{len(slow)} tests of {SECONDS} s and more\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
