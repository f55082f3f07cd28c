"""Checks as they are written: constant ones, sentences, time limits, programs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.team.rules.proof.checks import (
    LONGEST,
    find_check_problem,
    find_programs,
    is_read_only_check,
    is_sentence_like,
    predict_exit_status,
    split_time_limit,
)
from tests.cases import for_each

CONSTANT = (
    "true", ":", "exit 0", "/bin/true", "command true", "echo tests pass", "printf ok", "! false", "# pytest",
    "pytest || true", "pytest || :", "pytest || exit 0", "pytest || echo failed", "pytest; true", "pytest; exit 0",
    "pytest; echo $?", "pytest &", "pytest | tee log", "pytest 2>&1 | tail -5", "pytest > log || echo bad",
    "(pytest; exit 0)", "{ pytest; true; }", "sh -c 'pytest || true'", "bash -lc true", "true && echo ok", "X=1 true",
    "X=1", "[ 1 = 1 ]", "[[ -n x ]]", "test 1", "test -d .", "python3 -c 'pass'", "python -c 'print(1)'",
    "node -e 'process.exit(0)'", "echo $(pytest)", "exit 0; pytest", "time true",
)  # fmt: skip
OPEN = (
    "pytest", "pytest -q && echo ok", "set -e; pytest; echo ok", "set -o pipefail; pytest | tee log", "test -f a.py",
    "[ -s out ]", "grep -q one a.txt", "pytest 2>&1 | grep -q passed", "! grep -q TODO a.py", "sh -c 'pytest'",
    "python3 -c 'import a'", "python3 -c 'assert 1 + 1 == 2'", "make test", "false || pytest", "test -n \"$X\"",
    "grep one a.txt || { echo none >&2; exit 3; }", "if pytest; then exit 1; fi", "for f in *; do pytest $f; done",
    "x=$(pytest)", "cat a.txt", "exit 1", "false", "pytest || exit 1", "pytest > log",
)  # fmt: skip


@for_each("command", CONSTANT)
def test_a_command_that_passes_whatever_was_done_is_known_for_one(command: str) -> None:
    assert predict_exit_status(command) == "passes"
    assert "proves nothing" in find_check_problem(command)


@for_each("command", OPEN)
def test_a_command_that_can_fail_is_a_check(command: str) -> None:
    assert predict_exit_status(command) != "passes"
    assert not find_check_problem(command)


@given(st.sampled_from(CONSTANT), st.sampled_from(OPEN))
def test_behind_or_and_after_it_a_constant_takes_the_worth_of_every_check(constant: str, check: str) -> None:
    if not constant.endswith(("&", "pytest")) and not constant.startswith(("#", "exit")):
        assert predict_exit_status(f"({check}) || {{ {constant}; }}") == "passes"
        assert predict_exit_status(f"({check})\n{constant}") == "passes"


@for_each(
    ("check", "sentence"),
    [
        ("all tests pass", True),
        ("tests pass", True),
        ("The server answers on port 80.", True),
        ("テストがすべて通る", True),
        ("npm test", False),
        ("cargo test", False),
        ("pytest -q", False),
        ("./run.sh now", False),
        ("mytool --version", False),
    ],
)
def test_words_are_told_from_a_command_whose_program_is_not_there(check: str, sentence: bool) -> None:
    assert is_sentence_like(check) is sentence


def test_the_programs_of_a_check_are_those_it_calls_by_name() -> None:
    assert find_programs("cd x; FOO=1 pytest -q | grep ok && ./run && $TOOL") == ("pytest", "grep")
    assert find_programs("test -f a || exit 3") == ()


@for_each(
    ("check", "found"),
    [
        ("(10 min) pytest -q", ("pytest -q", 600)),
        ("(90s) make", ("make", 90)),
        ("（2 時間） make", ("make", 7200)),
        ("(1 h) make", ("make", 3600)),
        ("(cd x; make)", ("(cd x; make)", 0)),
        ("make", ("make", 0)),
    ],
)
def test_a_time_limit_stands_before_its_check(check: str, found: tuple[str, int]) -> None:
    assert split_time_limit(check) == found
    assert bool(find_check_problem(check)) is (found[1] > LONGEST)


@for_each(
    "check",
    [
        "",
        "(5 min) ",
        "cat <<X\na\nX",
        "tail -f log",
        "python3 -m http.server",
        "npx vitest --watch",
        "sleep infinity",
    ],
)
def test_what_is_no_command_that_ends_is_asked_back(check: str) -> None:
    assert find_check_problem(check)


@for_each(
    ("check", "looks"),
    [
        ("test -f a.txt", True), ("[ -s a.txt ]", True), ("grep -q one a.txt", True), ("test -f a && ! grep -q x a", True),
        ("[[ -f a.txt ]]", True), ("find . -name a.txt", True), ("pytest -q", False), ("npm run build", False), ("true", False),
        ("find . -delete", False), ("test -f a && make", False), ("grep -q x $(make)", False), ("cat a > b", False), ("", False),
    ],
)  # fmt: skip
def test_a_check_that_only_looks_is_told_from_one_that_runs_the_project(check: str, looks: bool) -> None:
    assert is_read_only_check(check) is looks
