"""What a command line is for: its purpose and its program, without what only wraps it; whether two are for the same."""

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
"""Characters of a command that a lesson can be about."""

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
"""What stands before a program and only says how it is found or run."""
_RUNS_NAMES = frozenset(
    ["npm", "pnpm", "yarn", "bun", "make", "just", "task", "cargo", "go", "mvn", "mvnw", "gradle", "gradlew", "dotnet", "rake",
     "mix", "sbt", "deno", "composer", "bazel", "tox", "nox", "hatch", "invoke", "ninja", "swift", "zig", "stack", "cabal"]
)  # fmt: skip
"""Programs that do what their first operand names."""

_RUN_FILES = frozenset(["perl", "uv", "node", "python", "python3", "ruby", "php", "java"])
"""Programs whose first operand may be a program, such as a file of tests."""
NAMES_ONLY = frozenset(
    ["git", "gh", "glab", "hg", "svn", "docker", "podman", "kubectl", "helm", "terraform", "psql", "mysql", "sqlite3", "redis-cli",
     "createdb", "dropdb", "ssh", "scp", "rsync", "curl", "wget", "aws", "gcloud", "az", "systemctl", "service", "kill", "pkill",
     "cp", "mv", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "tar", "zip", "unzip", "sed", "awk", "tee", "xargs",
     "pip", "pip3", "gem", "brew", "apt", "apt-get", "apk", "dnf", "code", "cd", "test", "[", "find", "sleep", "echo", "printf"]
)  # fmt: skip
"""Programs that run no check, whatever their operands are called."""
_TAKE_NAMES = NAMES_ONLY | _RUN_FILES
"""Programs whose operands name what people made: a branch, an image, a file, a package. Those say nothing of a purpose."""
_TASK = lazy(r"[A-Za-z][A-Za-z0-9]*(?:[-_:][A-Za-z0-9]+)*")
MOST_NAMED = 2
"""Operands of a program in which its work may be named."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a command is for. `program`: what does the work; `lead`: what stands before it; `rest`: its arguments."""

    purpose: Purpose
    program: str
    lead: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


@lru_cache(maxsize=512)
def intent_of(command: str) -> Intent | None:
    """The intent of `command`; None where it only looks, cannot be read, or is no line that a lesson could name."""
    if not 0 < len(command) <= LONGEST or "`" in command or "\n" in command or not command.isprintable():
        return None
    script = read_script(command)
    if script.broken or not script.commands or read_only(command, LOOKING):
        return None
    main = _main(script.commands)
    assigned = tuple(f"{name}={value.text}" for name, value in main.assigned)
    if not main.words:
        return None
    lead: list[str] = [*assigned, *(" ".join(each.texts) for each in script.commands if each is not main)]
    rest = (program_name(main.words), *main.texts[1:])
    while taken := next((one for one in _LEADS if rest[: len(one)] == one and len(rest) > len(one)), None):
        lead += taken
        rest = rest[len(taken) :]
        while len(rest) > 1 and (rest[0].startswith("-") or re.match(r"^\w+=", rest[0])):
            lead.append(rest[0])
            rest = rest[1:]
    program = next(iter(rest))
    if program in _RUNS_NAMES:
        named = [word for word in rest[1:] if not word.startswith("-") and word != "run"]
        program = f"{program} {named[0]}" if named else program
    return Intent(_purpose(command, program, _operands(program, rest[1:])), program, tuple(lead), rest[1:])


def same_intent(one: Intent, other: Intent) -> bool:
    """Whether two commands are for the same: the same program does it, or it is the same known purpose."""
    return one.program == other.program or (one.purpose == other.purpose != "other")


def differs_in_form(failed: Intent, passed: Intent) -> bool:
    """Whether the commands differ in more than the arguments of the same program: in the program or in what stands before
    it. Other arguments alone may only mean that less was asked for."""
    return failed.program != passed.program or sorted(failed.lead) != sorted(passed.lead)


def differ_in_folder(failed: str, passed: str) -> bool:
    """Return True if two command lines are the same but for the folder of one file that they name."""
    one, other = failed.split(), passed.split()
    if len(one) != len(other):
        return False
    apart = [(was, now) for was, now in zip(one, other, strict=True) if was != now]
    names = {word.rpartition("/")[2] for pair in apart for word in pair}
    return len(apart) == 1 and len(names) == 1 and "" not in names


def asks_for_less(failed: Intent, passed: Intent) -> bool:
    """Whether the same program was given arguments that it had not before, which may have left out what failed."""
    return failed.program == passed.program and not set(passed.rest) <= set(failed.rest)


def _main(commands: tuple[SimpleCommand, ...]) -> SimpleCommand:
    """The command of a line that it is for: the first that does not only go to a folder or set something."""
    return next(
        (
            each
            for each in commands
            if program_name(each.words) not in ("", "cd", "export", "set", "source", ".")
        ),
        commands[0],
    )


def _operands(program: str, rest: tuple[str, ...]) -> str:
    """The operands of a program that may name its work: of one that nobody knows each of the first ones, also as a part of
    a name: `frob run lint-parser`, `frob -C parser test`, `frob parser:build`."""
    operands = [word for word in rest if not word.startswith("-")]
    if program in _TAKE_NAMES or " " in program:
        return " ".join(word for word in operands[:1] if word.isalpha())
    named = [word for word in operands if word != "run"][:MOST_NAMED]
    return " ".join(word for word in named if _TASK.fullmatch(word))


def _purpose(command: str, program: str, operands: str) -> Purpose:
    """What a command is for by the name of its program, else by its operands: what a test runner is given are names of
    tests, whatever these are called."""
    if (found := _first_purpose(_pieces(program))) or is_test_command(command):
        return found or "test"
    return _first_purpose(_parts(operands)) or "other"


def _first_purpose(pieces: Iterator[str]) -> Purpose | None:
    known = tuple(pieces)
    return next((purpose for purpose, words in _PURPOSES if any(map(words.fullmatch, known))), None)


def _pieces(program: str) -> Iterator[str]:
    """The words of a program's name: `./scripts/run-tests.sh` has run, tests and run-tests."""
    name = program.rpartition("/")[2]
    stem = re.sub(r"\.(?:sh|py|js|mjs|ts|rb|pl|bat|cmd|ps1)$", "", name)
    for found in _PIECES.findall(stem.replace("_", "-")):
        yield found
        yield from found.split("-")
    if " " in program:
        yield from list(_parts(program))[1:]


def _parts(operands: str) -> Iterator[str]:
    yield from re.split(r"[\s:_-]+", operands)
