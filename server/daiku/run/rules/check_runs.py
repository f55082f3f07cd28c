"""Checks among a run's commands: which tests, builds, and linters ran, and what is known of each at the end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from daiku.domain.work.handovers import CommandOutcome
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.judge import LOOKING, read_only
from daiku.playbook.rules.lessons.intents import NAMES_ONLY, Intent, asks_for_less, intent_of
from daiku.team.rules.proof.attempts import Attempts
from daiku.team.rules.proof.check_strength import is_test_command, tests_ran
from daiku.team.rules.proof.checks import discards_exit_code
from daiku.team.rules.proof.evidence import Evidence, plain_command
from daiku.team.rules.proof.failures import is_missing, same_work
from daiku.texts.rules.patterns import lazy

CheckState = Literal["passed", "failed", "unknown", "running"]
"""`unknown`: the exit code of the check was discarded, and its output does not show that it passed."""
_CHECKING = ("test", "lint", "types", "build")
_SHOWS_ONLY = frozenset(
    ["--version", "-V", "--help", "-h", "--collect-only", "--co", "--list", "--list-tests", "--listTests", "--no-run", "--dry-run"]
)  # fmt: skip
"""Options with which a program prints information and checks nothing."""
_MOST_WORDS = 8
"""Words of a command that say what it is for."""
_MOST_TESTS = 20
"""Number of failing tests that are told at once."""
_ECOSYSTEMS: Mapping[str, str] = MappingProxyType(
    {
        "Python": "python py pytest py.test unittest doctest nose nosetests tox nox hatch invoke pdm poetry ruff flake8 pylint mypy "
        "pyright basedpyright black isort",
        "JavaScript": "js mjs cjs ts npm pnpm yarn bun deno node jest vitest mocha ava karma cypress eslint tsc biome prettier stylelint "
        "webpack vite",
        "Rust": "cargo rustc rustfmt",
        "Go": "go golangci-lint gofmt",
        "JVM": "mvn mvnw gradle gradlew sbt lein javac",
        ".NET": "dotnet",
        "Ruby": "rb ruby rake rspec minitest rubocop",
        "PHP": "php composer phpunit phpstan",
        "C": "ctest cmake gcc g++ clang cc",
        "Swift": "swift",
        "Zig": "zig",
        "Elixir": "mix",
        "Haskell": "stack cabal",
        "Dart": "dart flutter",
    }
)
"""Programs, and suffixes of scripts, that only work on projects of one ecosystem. `make` and shell scripts may run any."""
_NO_FAILURES = lazy(
    r"\b(?:0|no) (?:\w+ )?(?:fail\w*|errors?)\b|\b(?:fail\w*|errors?)[:=]? ?0\b", re.IGNORECASE
)
_FAILURES = lazy(r"\b(?:fail|failed|failures?|errors?|traceback|panicked)\b", re.IGNORECASE)


class CheckRun(NamedTuple):
    """A check that ran. `position`: the number of commands up to and including it."""

    command: str
    intent: Intent
    state: CheckState
    exit_code: int
    position: int
    output: str


class CheckRuns(NamedTuple):
    """Checks at the end of a run: `open` ones, `passed` ones, and positions of (`known_`)`changes` of files."""

    open: tuple[CheckRun, ...]
    passed: tuple[CheckRun, ...]
    changes: tuple[int, ...]
    known_changes: tuple[int, ...]

    def has_pass_since(self, position: int) -> bool:
        """Return True if a check passed after so many commands."""
        return any(check.position > position for check in self.passed)

    def has_passed_since_change(self, command: str) -> bool:
        """Return True if this check passed after the latest change."""
        latest = max(self.changes, default=0)
        return any(
            check.position > latest and plain_command(check.command) == command for check in self.passed
        )


@lru_cache(maxsize=512)
def check_intent(command: str) -> Intent | None:
    """Return the intent of the first check in a command line; None if it has none."""
    intents = (_intent(each.texts) for each in read_script(command).commands if each.words)
    return next((intent for intent in intents if intent is not None), None)


def _intent(words: Sequence[str]) -> Intent | None:
    if not words or words[0].rpartition("/")[2] in NAMES_ONLY or not _SHOWS_ONLY.isdisjoint(words):
        return None
    intent = intent_of(shlex.join(words[:_MOST_WORDS]))
    return intent if intent is not None and intent.purpose in _CHECKING else None


def check_runs(commands: Sequence[CommandOutcome], tried: Attempts) -> CheckRuns:
    """Return what the record shows of the checks that ran."""
    jobs = {job.call_id: job for job in tried.jobs.values()}
    changes, known_changes = [*tried.edits], list[int]()
    still: list[CheckRun] = []
    passed: list[CheckRun] = []
    for position, command in enumerate(commands, 1):
        job = jobs.get(command.call_id)
        if job is None and not command.ended:
            continue
        intent = check_intent(command.command)
        if intent is None:
            if command.unchanged is False:
                known_changes.append(position)
            if command.unchanged is False or not (
                command.exit_code or command.unchanged or read_only(command.command, LOOKING)
            ):
                changes.append(position)
            continue
        code = command.exit_code if job is None else job.exit_code
        check = CheckRun(command.command, intent, _state(command, code), code or 0, position, command.output)
        still = [each for each in still if not _settles(check, each, changes)]
        if check.state == "passed":
            passed.append(check)
        elif check.state != "unknown" or not _is_passing(check, passed, changes):
            still.append(check)
    return CheckRuns(tuple(still), tuple(passed), tuple(changes), tuple(known_changes))


def failing_tests(done: Evidence) -> tuple[str, ...]:
    """Return the tests of all of an item's runs that failed last. Some may have failed before the work began."""
    checks = check_runs(done.commands, Attempts()).open
    failed = (each.command for each in checks if each.state == "failed" and is_test_command(each.command))
    return tuple(failed)[:_MOST_TESTS]


def _state(command: CommandOutcome, code: int | None) -> CheckState:
    if code is None:
        return "running"
    if discards_exit_code(command.command, _is_check):
        return "passed" if shows_pass(command.output) else "unknown"
    return "failed" if code else "passed"


def _is_check(words: Sequence[str]) -> bool:
    return _intent(tuple(words)) is not None


def shows_pass(output: str) -> bool:
    """Return True if a test runner says in its output that tests ran and none failed."""
    return bool(tests_ran(output)) and not _FAILURES.search(_NO_FAILURES.sub("", output))


def _settles(later: CheckRun, earlier: CheckRun, changes: Iterable[int]) -> bool:
    """Return True if `later` settles `earlier`: the same check, or one that passed after a change or checked no less.

    Another program settles a failure only after a change, and only if it may check the same."""
    if later.command == earlier.command:
        return later.state != "unknown"
    if later.state != "passed" or later.intent.purpose != earlier.intent.purpose:
        return False
    if not _has_started(earlier):
        return True
    changed = any(earlier.position <= at < later.position for at in changes)
    if later.intent.program == earlier.intent.program or same_work(earlier.command, later.command):
        return changed or not _checks_less(later, earlier)
    return (changed or earlier.state != "failed") and _may_check_same(later, earlier)


def _has_started(check: CheckRun) -> bool:
    """Return True unless the program of a check is missing, or found no tests to run."""
    ran = tests_ran(check.output)
    no_tests = ran == 0 and not _FAILURES.search(check.output)
    return bool(ran) or not (no_tests or is_missing(check.exit_code, check.output))


def _may_check_same(one: CheckRun, other: CheckRun) -> bool:
    """Return True unless the programs of two checks are known to belong to different ecosystems."""
    ecosystems = {_ecosystem(one.intent.program), _ecosystem(other.intent.program)}
    return len(ecosystems - {""}) < 2


def _ecosystem(program: str) -> str:
    """Return the ecosystem of a program such as `npm test`, `python3.11`, or `run_tests.py`; empty if it may be any."""
    name = program.partition(" ")[0].rpartition("/")[2]
    names = {name, name.rstrip("0123456789."), name.rpartition(".")[2]}
    return next((key for key, known in _ECOSYSTEMS.items() if not names.isdisjoint(known.split())), "")


def _checks_less(later: CheckRun, earlier: CheckRun) -> bool:
    """Return True if `later` may have left out what failed: it has a new target, or new options and shows no passed test."""
    if not asks_for_less(earlier.intent, later.intent):
        return False
    return not _targets(later.intent) <= _targets(earlier.intent) or not shows_pass(later.output)


def _targets(intent: Intent) -> frozenset[str]:
    """Return what a check was asked to look at: its operands and options with a value, such as `--ignore=tests/test_a.py`."""
    return frozenset(
        word for word in intent.rest if "=" in word or not (word.startswith("-") or word.isdigit())
    )


def _is_passing(check: CheckRun, passed: Iterable[CheckRun], changes: Sequence[int]) -> bool:
    """Return True if a check of the same kind passed after the latest change."""
    latest = max(changes, default=0)
    later = (
        each for each in passed if each.position > latest and each.intent.purpose == check.intent.purpose
    )
    return any(_may_check_same(each, check) for each in later)
