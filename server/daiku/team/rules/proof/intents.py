"""Intent of a command line: its purpose and its program, without wrappers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import SimpleCommand, read_script
from daiku.guard.rules.commands.judge import LOOKING, read_only
from daiku.guard.rules.commands.wrappers import program_name
from daiku.team.rules.proof.check_strength import is_test_command
from daiku.texts.rules.patterns import lazy

Purpose = Literal["test", "lint", "format", "types", "build", "install", "generate", "start", "other"]
LONGEST = 160
"""Maximum length of a command in a lesson, in characters."""

_WORDS: tuple[tuple[Purpose, str], ...] = (
    ("types", r"mypy|pyright|basedpyright|tsc|type-?check(?:ing)?|types"),
    ("lint", r"lint(?:er|ing)?|eslint|ruff|flake8|pylint|clippy|vet|golangci-lint|biome|stylelint|shellcheck|rubocop"),
    ("format", r"format(?:ter|ting)?|fmt|prettier|black|isort|gofmt|rustfmt|clang-format"),
    ("test", r"tests?|testing|spec|specs|check|checks|verify"),
    ("install", r"install|sync|ci|deps|dependencies|bootstrap|setup|restore"),
    ("generate", r"gen|generate|codegen|protoc|migrate|migrations?"),
    ("build", r"build|compile|bundle|package|assemble|dist|cmake|gcc|clang|cc|javac|rustc|webpack|make|ninja"),
    ("start", r"start|serve|run-?server|dev|up|launch"),
)  # fmt: skip
_PURPOSES: tuple[tuple[Purpose, re.Pattern[str]], ...] = tuple(
    (purpose, lazy(rf"(?:{words})", re.IGNORECASE)) for purpose, words in _WORDS
)
_PIECES = lazy(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)?")
_LEADS: tuple[tuple[str, ...], ...] = (
    ("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("rye", "run"),
    ("npx",), ("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "run"), ("yarn", "exec"), ("npm", "exec", "--"), ("npm", "exec"),
    ("bunx",), ("bundle", "exec"), ("python", "-m"), ("python3", "-m"), ("py", "-m"), ("dotnet", "tool", "run"),
    ("env",), ("time",), ("command",), ("nice",), ("sh",), ("bash",), ("mise", "exec", "--"), ("direnv", "exec", "."),
)  # fmt: skip
"""Wrappers that only locate or start a program."""
_RUNS_NAMES = frozenset(
    ["npm", "pnpm", "yarn", "bun", "make", "just", "task", "cargo", "go", "mvn", "mvnw", "gradle", "gradlew", "dotnet", "rake",
     "mix", "sbt", "deno", "composer", "bazel", "tox", "nox", "hatch", "invoke", "ninja", "swift", "zig", "stack", "cabal"]
)  # fmt: skip
"""Programs that run the task named by their first operand."""

_RUN_FILES = frozenset(["perl", "uv", "node", "python", "python3", "ruby", "php", "java"])
"""Programs whose first operand may be a program, such as a test file."""
NAMES_ONLY = frozenset(
    ["git", "gh", "glab", "hg", "svn", "docker", "podman", "kubectl", "helm", "terraform", "psql", "mysql", "sqlite3", "redis-cli",
     "createdb", "dropdb", "ssh", "scp", "rsync", "curl", "wget", "aws", "gcloud", "az", "systemctl", "service", "kill", "pkill",
     "cp", "mv", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "tar", "zip", "unzip", "sed", "awk", "tee", "xargs",
     "pip", "pip3", "gem", "brew", "apt", "apt-get", "apk", "dnf", "code", "cd", "test", "[", "find", "sleep", "echo", "printf"]
)  # fmt: skip
"""Programs that never run a check, whatever their operands are called."""
_TAKE_NAMES = NAMES_ONLY | _RUN_FILES
"""Programs whose operands are names, such as branches, images, or files, and say nothing about the purpose.
"""
_TASK = lazy(r"[A-Za-z][A-Za-z0-9]*(?:[-_:][A-Za-z0-9]+)*")
MOST_NAMED = 2
"""Number of operands of an unknown program that may name its task."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Purpose and `program` of a command; `lead`: the wrappers before it; `rest`: its arguments."""

    purpose: Purpose
    program: str
    lead: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


@lru_cache(maxsize=512)
def find_intent(command: str) -> Intent | None:
    """Return the intent of a command; None if it only reads, cannot be parsed, or does not fit a lesson."""
    if not 0 < len(command) <= LONGEST or "`" in command or "\n" in command or not command.isprintable():
        return None
    script = read_script(command)
    if script.broken or not script.commands or read_only(command, LOOKING):
        return None
    main = _find_main(script.commands)
    assigned = tuple(f"{name}={value.text}" for name, value in main.assigned)
    if not main.words:
        return None
    lead: list[str] = [*assigned, *(" ".join(each.texts) for each in script.commands if each is not main)]
    rest = (program_name(main.words), *main.texts[1:])
    while wrapper := next(
        (
            wrapper_words
            for wrapper_words in _LEADS
            if rest[: len(wrapper_words)] == wrapper_words and len(rest) > len(wrapper_words)
        ),
        None,
    ):
        lead += wrapper
        rest = rest[len(wrapper) :]
        while len(rest) > 1 and (rest[0].startswith("-") or re.match(r"^\w+=", rest[0])):
            lead.append(rest[0])
            rest = rest[1:]
    program = next(iter(rest))
    if program in _RUNS_NAMES:
        tasks = [word for word in rest[1:] if not word.startswith("-") and word != "run"]
        program = f"{program} {tasks[0]}" if tasks else program
    return Intent(
        _find_purpose(command, program, _select_operands(program, rest[1:])), program, tuple(lead), rest[1:]
    )


def have_same_intent(one: Intent, other: Intent) -> bool:
    """Return True if both commands run the same program, or have the same known purpose."""
    return one.program == other.program or (one.purpose == other.purpose != "other")


def differs_in_form(failed: Intent, passed: Intent) -> bool:
    """Return True if the commands differ in the program or in its wrappers.

    Other arguments of the same program do not count: they may only ask for less.
    """
    return failed.program != passed.program or sorted(failed.lead) != sorted(passed.lead)


def differ_in_folder(failed: str, passed: str) -> bool:
    """Return True if two command lines differ only in the folder of one file."""
    one, other = failed.split(), passed.split()
    if len(one) != len(other):
        return False
    differences = [(was, now) for was, now in zip(one, other, strict=True) if was != now]
    names = {word.rpartition("/")[2] for pair in differences for word in pair}
    return len(differences) == 1 and len(names) == 1 and "" not in names


def asks_for_less(failed: Intent, passed: Intent) -> bool:
    """Return True if the passed command has new arguments, which may skip what failed."""
    return failed.program == passed.program and not set(passed.rest) <= set(failed.rest)


def _find_main(commands: tuple[SimpleCommand, ...]) -> SimpleCommand:
    """Return the main command of a line: the first that does more than change folder or set variables."""
    return next(
        (
            each
            for each in commands
            if program_name(each.words) not in ("", "cd", "export", "set", "source", ".")
        ),
        commands[0],
    )


def _select_operands(program: str, rest: tuple[str, ...]) -> str:
    """Return the operands of a program that may name its task.

    For an unknown program these are the first ones: `frob run lint-parser`, `frob -C parser test`, `frob
    parser:build`.
    """
    operands = [word for word in rest if not word.startswith("-")]
    if program in _TAKE_NAMES or " " in program:
        return " ".join(word for word in operands[:1] if word.isalpha())
    names = [word for word in operands if word != "run"][:MOST_NAMED]
    return " ".join(word for word in names if _TASK.fullmatch(word))


def _find_purpose(command: str, program: str, operands: str) -> Purpose:
    """Return the purpose of a command by the name of its program, else by its operands."""
    if (purpose := _match_purpose(_split_program(program))) or is_test_command(command):
        return purpose or "test"
    return _match_purpose(_split_operands(operands)) or "other"


def _match_purpose(pieces: Iterator[str]) -> Purpose | None:
    all_pieces = tuple(pieces)
    return next((purpose for purpose, words in _PURPOSES if any(map(words.fullmatch, all_pieces))), None)


def _split_program(program: str) -> Iterator[str]:
    """Yield the words of a program's name: `./scripts/run-tests.sh` has run, tests, and run-tests."""
    name = program.rpartition("/")[2]
    stem = re.sub(r"\.(?:sh|py|js|mjs|ts|rb|pl|bat|cmd|ps1)$", "", name)
    for piece in _PIECES.findall(stem.replace("_", "-")):
        yield piece
        yield from piece.split("-")
    if " " in program:
        yield from list(_split_operands(program))[1:]


def _split_operands(operands: str) -> Iterator[str]:
    yield from re.split(r"[\s:_-]+", operands)
