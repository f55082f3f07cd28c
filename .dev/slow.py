"""Writes tests/slow.txt: runs what the fast loop could run, and lists the tests that it leaves out for the time they take."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "slow.txt"
SECONDS = 0.06
"""A test of which one case takes so long."""
RUN = ("-m", "pytest", "-n", "2", "--dist=worksteal", "-q", "-m", "not slow and not editor and not bench")
"""As the fast loop runs them: of a property that is a few examples, not all."""


def tests_of(report: Path) -> dict[str, float]:
    """The seconds that the longest case of each test took, by file and name."""
    found: dict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):
        file = f"{case.get('classname', '').replace('.', '/')}.py"
        test = f"{file}::{case.get('name', '').partition('[')[0]}"
        found[test] = max(found[test], float(case.get("time", 0)))
    return found


def may_be_left_out(test: str) -> bool:
    """Tests of the repository as a whole (tests/test_*.py) may not, whatever they take: any change can break them."""
    return not test.startswith("tests/test_")


def main() -> int:
    """Write the list anew, or leave it as it is where a test fails."""
    before = LIST.read_text("utf-8")
    LIST.write_text("")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = (*RUN, "--hypothesis-profile=quick", f"--junitxml={report}")
        code = subprocess.run([sys.executable, *options], cwd=ROOT, check=False).returncode
        took = {} if code else tests_of(report)
    slow = [test for test, seconds in sorted(took.items()) if seconds >= SECONDS and may_be_left_out(test)]
    LIST.write_text(before if code else "".join(f"{test}\n" for test in slow))
    sys.stderr.write("" if code else f"{len(slow)} tests of {SECONDS} s and more\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
