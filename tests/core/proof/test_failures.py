"""A command that failed stays failed until an exit code says otherwise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.team.rules.proof.failures import CommandRun, find_open_failures, hides_exit_code, is_same_work
from tests.cases import for_each


def ran(command: str, code: int = 0, *, listed: bool = True, stead: str = "") -> CommandRun:
    return CommandRun(command, code == 0, "", command, listed, stead, code)


def still(*commands: CommandRun) -> list[str]:
    return [each.command for each in find_open_failures(commands)]


@for_each(
    "later",
    [
        "pytest",
        "pytest -q",
        "python -m pytest",
        "./venv/bin/pytest -x",
        "PYTHONPATH=. pytest",
        "timeout 60 pytest",
    ],
)
def test_the_same_work_that_ends_well_closes_a_failure(later: str) -> None:
    assert still(ran("pytest", 1), ran(later)) == []
    assert still(ran("pytest", 1), ran(later, 1)) != []


@for_each(
    "later",
    ["true", "echo ok", ":", "exit 0", "ls", "cat README.md", "pytest --version", "pytest -h", "git status",
     "pytest || true", "pytest; echo $?", "pytest | tail -1", "pytest tests/one.py", "pip install pytest",
     "sh -c 'pytest || true'"],
)  # fmt: skip
def test_nothing_else_does(later: str) -> None:
    assert still(ran("pytest", 1), ran(later)) == ["pytest"]
    assert still(ran("pytest", 1), ran(later, listed=False)) == ["pytest"]


@for_each(
    ("failed", "later", "open_"),
    [
        ("make test", "npm test", []),
        ("cat a", "cat b", []),
        ("make test", "true", ["make test"]),
        ("make test", "echo passed", ["make test"]),
        ("make test", "ls", ["make test"]),
        ("make test", "npm --version", ["make test"]),
        ("make test", "npm test || true", ["make test"]),
    ],
)
def test_what_the_role_runs_in_its_place_closes_it_where_it_does_any_work(
    failed: str, later: str, open_: list[str]
) -> None:
    assert still(ran(failed, 1), ran(later, stead=failed)) == open_


def test_a_replacement_that_fails_takes_the_place_of_what_it_replaced() -> None:
    assert still(ran("python t.py", 127), ran("node t.js", 1, stead="python t.py")) == ["node t.js"]
    assert still(ran("make", 1), ran("false", 1, stead="make")) == ["make", "false"]


def test_a_look_around_of_the_models_own_that_finds_nothing_is_no_failure() -> None:
    assert still(ran("grep -r x .", 1, listed=False), ran("ls missing", 2, listed=False)) == []
    assert still(ran("cat missing", 1)) == ["cat missing"], "in the role's list it was to be run"
    assert still(ran("false", 1, listed=False)) == ["false"], "it looks at nothing"


@given(st.lists(st.tuples(st.sampled_from(["a x", "b y", "c z"]), st.integers(0, 1)), max_size=12))
def test_it_is_the_last_exit_code_of_each_that_counts(runs: list[tuple[str, int]]) -> None:
    last = dict(runs)
    assert set(still(*(ran(command, code) for command, code in runs))) == {c for c in last if last[c]}


@for_each(
    "command",
    ["make || true", "make || :", "make ||true", "make; true", "make; echo $?", "make\necho done", "make || echo failed",
     "make | tail -1", "make 2>&1 | tee log", "(make) || true", "sh -c 'make || true'", "a && make | head", "make || exit 0"],
)  # fmt: skip
def test_an_exit_code_that_is_not_the_works_is_seen(command: str) -> None:
    assert hides_exit_code(command)


@for_each(
    "command",
    ["make", "make && echo ok", "make || exit 1", "make || { echo no; exit 1; }", "git log | head -3", "cat x | wc -l",
     "set -o pipefail; make | tail", "echo 'a || true'", "grep x y || true", "make;", "", "'", "make | grep x"],
)  # fmt: skip
def test_an_exit_code_that_is_the_works_is_left_alone(command: str) -> None:
    assert not hides_exit_code(command)


def test_the_same_words_are_the_same_work() -> None:
    assert is_same_work("python t.py", "python3 t.py")
    assert is_same_work("npm test", "npm run test")
    assert is_same_work("sh check.sh", "bash ./check.sh") is False, "another path may be another file"
    assert not is_same_work("make", "make clean")
    assert not is_same_work("npm test", "npm ci")


@given(st.text(max_size=60))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert hides_exit_code(text) in (True, False)
    assert still(ran(text, 1, listed=False)) in ([], [text])
