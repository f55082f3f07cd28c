"""Checks among a run's commands: which tests, builds, and linters ran, and their final states."""

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
from daiku.team.rules.proof.attempts import Attempts
from daiku.team.rules.proof.check_strength import count_tests, is_test_command
from daiku.team.rules.proof.checks import can_discard_exit_code
from daiku.team.rules.proof.evidence import Evidence, normalize_command
from daiku.team.rules.proof.failures import is_missing, is_same_work
from daiku.team.rules.proof.intents import NAMES_ONLY, Intent, asks_for_less, find_intent
from daiku.texts.rules.patterns import lazy

CheckState = Literal["passed", "failed", "unknown", "running"]
"""`unknown`: the exit code was discarded, and the output does not show that the check passed."""
_CHECKING = ("test", "lint", "types", "build")
_SHOWS_ONLY = frozenset(
    ["--version", "-V", "--help", "-h", "--collect-only", "--co", "--list", "--list-tests", "--listTests", "--no-run", "--dry-run"]
)  # fmt: skip
"""Options with which a program prints information and checks nothing."""
_MOST_WORDS = 8
"""Words of a command that determine its intent, at most."""
_MOST_TESTS = 20
"""Failing tests that are reported at once, at most."""
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
"""Programs and script suffixes that belong to one ecosystem. `make` and shell scripts belong to none."""
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
        """Return True if a check passed after this number of commands."""
        return any(check.position > position for check in self.passed)

    def has_passed_since_change(self, command: str) -> bool:
        """Return True if this check passed after the latest change."""
        latest = max(self.changes, default=0)
        return any(
            check.position > latest and normalize_command(check.command) == command for check in self.passed
        )


@lru_cache(maxsize=512)
def check_intent(command: str) -> Intent | None:
    """Return the intent of the first check in a command line; None if it has none."""
    intents = (_intent_of_words(each.texts) for each in read_script(command).commands if each.words)
    return next((intent for intent in intents if intent is not None), None)


def _intent_of_words(words: Sequence[str]) -> Intent | None:
    if not words or words[0].rpartition("/")[2] in NAMES_ONLY or not _SHOWS_ONLY.isdisjoint(words):
        return None
    intent = find_intent(shlex.join(words[:_MOST_WORDS]))
    return intent if intent is not None and intent.purpose in _CHECKING else None


def check_runs(commands: Sequence[CommandOutcome], attempts: Attempts) -> CheckRuns:
    """Return the states of the checks in the record."""
    jobs = {job.call_id: job for job in attempts.jobs.values()}
    changes, known_changes = [*attempts.edits], list[int]()
    open_checks: list[CheckRun] = []
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
        check = CheckRun(
            command.command, intent, _check_state(command, code), code or 0, position, command.output
        )
        open_checks = [each for each in open_checks if not _settles(check, each, changes)]
        if check.state == "passed":
            passed.append(check)
        elif check.state != "unknown" or not _has_later_pass(check, passed, changes):
            open_checks.append(check)
    return CheckRuns(tuple(open_checks), tuple(passed), tuple(changes), tuple(known_changes))


def failing_tests(done: Evidence) -> tuple[str, ...]:
    """Return the tests that failed last in an item's runs. Some may have failed before the work started."""
    checks = check_runs(done.commands, Attempts()).open
    commands = (each.command for each in checks if each.state == "failed" and is_test_command(each.command))
    return tuple(commands)[:_MOST_TESTS]


def _check_state(command: CommandOutcome, code: int | None) -> CheckState:
    if code is None:
        return "running"
    if can_discard_exit_code(command.command, _is_check):
        return "passed" if shows_pass(command.output) else "unknown"
    return "failed" if code else "passed"


def _is_check(words: Sequence[str]) -> bool:
    return _intent_of_words(tuple(words)) is not None


def shows_pass(output: str) -> bool:
    """Return True if the output of a test runner shows that tests ran and none failed."""
    return bool(count_tests(output)) and not _FAILURES.search(_NO_FAILURES.sub("", output))


def _settles(later: CheckRun, earlier: CheckRun, changes: Iterable[int]) -> bool:
    """Return True if `later` makes `earlier` obsolete: the same check, or a pass that covers it.

    Another program settles a failure only after a change, and only if it may check the same.
    """
    if later.command == earlier.command:
        return later.state != "unknown"
    if later.state != "passed" or later.intent.purpose != earlier.intent.purpose:
        return False
    if not _has_run(earlier):
        return True
    has_change = any(earlier.position <= at < later.position for at in changes)
    if later.intent.program == earlier.intent.program or is_same_work(earlier.command, later.command):
        return has_change or not _checks_less(later, earlier)
    return (has_change or earlier.state != "failed") and _may_check_same(later, earlier)


def _has_run(check: CheckRun) -> bool:
    """Return True unless the check's program is missing or found no tests."""
    count = count_tests(check.output)
    no_tests = count == 0 and not _FAILURES.search(check.output)
    return bool(count) or not (no_tests or is_missing(check.exit_code, check.output))


def _may_check_same(one: CheckRun, other: CheckRun) -> bool:
    """Return True unless the two programs belong to different ecosystems."""
    ecosystems = {_ecosystem_of(one.intent.program), _ecosystem_of(other.intent.program)}
    return len(ecosystems - {""}) < 2


def _ecosystem_of(program: str) -> str:
    """Return the ecosystem of a program such as `npm test` or `python3.11`; empty if unknown."""
    name = program.partition(" ")[0].rpartition("/")[2]
    names = {name, name.rstrip("0123456789."), name.rpartition(".")[2]}
    return next((key for key, programs in _ECOSYSTEMS.items() if not names.isdisjoint(programs.split())), "")


def _checks_less(later: CheckRun, earlier: CheckRun) -> bool:
    """Return True if `later` may skip what failed: new targets, or new options and no passed test."""
    if not asks_for_less(earlier.intent, later.intent):
        return False
    return not _targets(later.intent) <= _targets(earlier.intent) or not shows_pass(later.output)


def _targets(intent: Intent) -> frozenset[str]:
    """Return the operands of a check, and its options with values such as `--ignore=tests/test_a.py`."""
    return frozenset(
        word for word in intent.rest if "=" in word or not (word.startswith("-") or word.isdigit())
    )


def _has_later_pass(check: CheckRun, passed: Iterable[CheckRun], changes: Sequence[int]) -> bool:
    """Return True if a check of the same kind passed after the latest change."""
    latest = max(changes, default=0)
    later = (
        each for each in passed if each.position > latest and each.intent.purpose == check.intent.purpose
    )
    return any(_may_check_same(each, check) for each in later)
