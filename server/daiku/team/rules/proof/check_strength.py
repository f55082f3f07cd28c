"""Rate a passed check: whether it ran any tests, and whether the work changed the check's own files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from daiku.domain.work.handovers import Remark
from daiku.domain.work.patches import FileStat
from daiku.texts.rules.patterns import lazy


def find_weaknesses(
    command: str, output: str, files: Iterable[FileStat], *, passed_before: bool
) -> tuple[Remark, ...]:
    """List why a passed command proves little, e.g. no tests ran. `files`: files changed by the work."""
    remarks: list[Remark] = ["passed_before"] if passed_before else []
    if is_test_command(command) and count_tests(output) == 0:
        remarks.append("no_tests")
    if any(_is_part_of_check(command, stat) for stat in files):
        remarks.append("check_changed")
    return tuple(remarks)


SCRIPT = lazy(
    r"(?:^|/)(?:scripts|ci|bin|tools|\.github)/"
    r"|(?:^|[/_.-])(?:run_?)?(?:check|test|verify|validate|lint|ci|accept|assert|spec)[^/]*$",
    re.IGNORECASE,
)
"""Paths of scripts that check something."""
TEST_FILE = lazy(
    r"(?:^|/)(?:tests?|spec|__tests__)/|(?:^|/)test_[^/]*$|[._-](?:test|tests|spec)\.\w+$|Tests?\.\w+$"
)
BUILT_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "make": ("Makefile", "makefile", "GNUmakefile"),
        "npm": ("package.json",),
        "pnpm": ("package.json",),
        "yarn": ("package.json",),
        "bun": ("package.json",),
        "just": ("justfile", "Justfile"),
        "task": ("Taskfile.yml",),
        "tox": ("tox.ini",),
        "rake": ("Rakefile",),
        "composer": ("composer.json",),
    }
)
"""Files that define what a program does; changing them changes the check."""
_RUNNERS = "pytest|py\\.test|unittest|nosetests|tox|nox|jest|vitest|mocha|ava|karma|rspec|phpunit|ctest|minitest|playwright|cypress"
_BUILDERS = (
    "npm|pnpm|yarn|bun|deno|cargo|go|mvn|mvnw|gradle|gradlew|dotnet|swift|zig|mix|sbt|stack|cabal|flutter|dart|make|just|task|rake|"
    "lein|bazel|uv|poetry|hatch|pdm|composer"
)
_TESTS = lazy(
    rf"(?:^|[\s/('\"])(?:{_RUNNERS})\b"
    rf"|(?:^|[\s/])(?:{_BUILDERS})\s+(?:\S+\s+){{0,3}}?(?:run[\s-])?(?:test|tests|check|t)\b"
    r"|\bnode\s+(?:\S+\s+)*--test\b"
    r"|(?:^|[\s/.])(?:run_?)?tests?(?:[._-]\w+)*$|(?:^|[\s/])test_\w+|\w[._-]tests?\b",
    re.IGNORECASE,
)
_LOOK = lazy(
    r"^\s*(?:!\s*)?(?:test|\[|\[\[|grep|ls|cat|stat|wc|head|tail|rg|find|diff|cmp|jq|cc|gcc|clang|python[\d.]*\s+-m\s+py_compile)\s"
)
_RAN = tuple(
    lazy(pattern, re.MULTILINE | re.IGNORECASE)
    for pattern in (
        r"^Ran (\d+) tests?\b",
        r"^=*\s*(?:\d+ failed, )?(\d+) passed\b",
        r"^(?:#|ℹ) tests (\d+)\b",
        r"^Tests?:?\s+(?:\d+ failed[,|]\s*)?(\d+) passed\b",
        r"^test result: \w+\. (\d+) passed\b",
        r"^\s*(\d+) passing\b",
        r"^Tests run: (\d+)\b",
        r"^(\d+) examples?, 0 failures",
        r"^OK \((\d+) tests?\b",
        r"^1\.\.(\d+)\s*$",
    )
)
_NO_TESTS = lazy(
    r"no tests? (?:ran|found|collected|to run)|no test files|collected 0 items|\[no tests to run\]"
    r"|\b0 tests? (?:ran|executed|collected)",
    re.IGNORECASE,
)


def is_test_command(command: str) -> bool:
    """Return True if a command runs tests; commands that only read a test file do not."""
    parts = (part.strip() for part in re.split(r"&&|\|\||;|\n", command))
    return any(_TESTS.search(part) and not _LOOK.match(part) for part in parts)


def count_tests(output: str) -> int | None:
    """Return the number of tests that a test runner reports; None if it reports none."""
    counts = [int(match[1]) for pattern in _RAN for match in pattern.finditer(output)]
    if counts:
        return sum(counts)
    return 0 if _NO_TESTS.search(output) else None


def _is_part_of_check(command: str, stat: FileStat) -> bool:
    """Return True if a changed file is part of the check: a script or build file that it runs, or an older test."""
    name = stat.path.rpartition("/")[2]
    words = {word.removeprefix("./") for word in re.split(r"[\s;&|()'\"=]+", command)}
    programs = {word.rpartition("/")[2] for word in words}
    existed = stat.kind != "create"
    is_script = (
        existed and stat.path in words and SCRIPT.search(stat.path) is not None and not _LOOK.match(command)
    )
    is_build_file = any(name in files for program, files in BUILT_BY.items() if program in programs)
    is_test = existed and is_test_command(command) and TEST_FILE.search(stat.path) is not None
    return is_script or is_build_file or is_test
