"""What a check shows: whether it runs tests, how many ran, and whether the work changed what it is made of."""

from __future__ import annotations

from daiku.domain.work.patches import FileStat
from daiku.team.rules.proof import check_strength
from daiku.team.rules.proof.check_strength import find_weaknesses, is_test_command
from tests.cases import for_each


@for_each(
    ("command", "tests"),
    [
        ("pytest -q", True), ("python3 -m unittest test_cart", True), ("npm test", True), ("npm run test:unit", True),
        ("make check", True), ("cargo test", True), ("go test ./...", True), ("node --test a.test.mjs", True),
        ("cc -o test_cart cart.c && ./test_cart", True), ("./run_tests.sh", True), ("tox -e py", True),
        ("test -f x.py", False), ("grep -q tests a", False), ("ls tests", False), ("make", False), ("npm run build", False),
        ("python -m py_compile test_a.py", False), ("cat test_a.py", False), ("[ -f test_a.py ]", False),
    ],
)  # fmt: skip
def test_a_command_that_runs_tests_is_told_from_one_that_looks_at_them(command: str, tests: bool) -> None:
    assert is_test_command(command) is tests


@for_each(
    ("output", "count"),
    [
        ("Ran 0 tests in 0.000s\n\nOK", 0), ("Ran 12 tests in 0.1s", 12), ("no tests ran in 0.01s", 0),
        ("===== 5 passed in 0.1s =====", 5), ("# tests 4\n# pass 4", 4), ("Tests:       7 passed, 7 total", 7),
        ("test result: ok. 9 passed; 0 failed", 9), ("?   x [no test files]", 0), ("  6 passing (5ms)", 6), ("done", None),
    ],
)  # fmt: skip
def test_the_number_of_tests_is_read_from_what_the_runner_prints(output: str, count: int | None) -> None:
    assert check_strength.count_tests(output) == count


@for_each(
    ("command", "path", "kind", "changed"),
    [
        ("make test", "Makefile", "edit", True),
        ("make test", "src/a.c", "edit", False),
        ("sh check.sh", "check.sh", "edit", True),
        ("./scripts/verify", "scripts/verify", "edit", True),
        ("npm test", "package.json", "edit", True),
        ("pytest -q", "tests/test_a.py", "edit", True),
        ("pytest -q", "tests/test_a.py", "create", False),
        ("pytest -q", "a.py", "edit", False),
        ("python main.py", "main.py", "edit", False),
        ("grep -q one check.sh", "check.sh", "edit", False),
    ],
)
def test_a_check_whose_own_files_the_work_changed_says_so(
    command: str, path: str, kind: str, changed: bool
) -> None:
    stat = FileStat.model_validate({"path": path, "kind": kind, "added": 1, "removed": 1})
    assert ("check_changed" in find_weaknesses(command, "", (stat,), passed_before=False)) is changed
