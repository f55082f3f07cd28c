"""The names of what a command runs: its program, the script of an interpreter, the target of a task runner."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.wrappers import SHELLS, program_name
from daiku.core.playbook.doubts.known_commands import is_checker, is_common_word, is_known_program
from daiku.core.text.patterns import lazy

_READ_IT = frozenset(
    ["python", "python3", "node", "ruby", "perl", "php", "deno", "bun", "java", "source", ".", "make", "just", "task", "rake",
     "gradle", "mvn", "mix", "npm", "pnpm", "yarn", "tox", "nox", "go", "cargo", "dotnet", "ant", "invoke", "inv", "poe"]
) | SHELLS  # fmt: skip
"""Programs that do what a file of the project says: their words name it."""
_PATTERN = frozenset("*?[{")
_PLACES = frozenset(["cd", "pushd", "cp", "mv", "ln", "install", "rsync", "unzip", "export"])
"""Programs that decide where things lie, or what they are called."""
_LIST = lazy(r"[:,;=\s]+")
_LEAST, _ATTACHED = 3, 4
"""Letters of a name, and of a value that is attached to its option, that are looked for."""


def names_run(simple: SimpleCommand) -> Iterator[str]:
    """The names of what the command runs that nobody knows, each without the folders that it lies in."""
    if not simple.words:
        return
    yield from _unknown(simple.texts[0])
    if program_name(simple.words) not in _READ_IT:
        return
    words = iter(simple.texts[1:])
    for word in words:
        if word == "-m":
            module = next(words, "")
            if is_known_program(module):
                return  # what stands behind is that program's
            yield from _unknown(module)
        elif not word.startswith("-"):
            yield from _unknown(word)


def values_given(simple: SimpleCommand, *, wraps: bool) -> Iterator[str]:
    """What else of a project decides what a command does: values of its options and of variables, the folder that is gone
    to, and what a program that is no checker is given. `wraps`: its operands are another command, which is looked at
    by itself. Each without the folders that it lies in."""
    yield from (name for _, value in simple.assigned for name in _named(value.text))
    if not simple.words:
        return
    program = program_name(simple.words)
    handles = not wraps and (program in _PLACES or (is_known_program(program) and not is_checker(program)))
    valued = False
    for word in simple.texts[1:]:
        if word.startswith("-"):
            _, given, value = word.partition("=")
            attached = "" if word.startswith("--") else word[2:]
            valued = not given and not is_common_word(word)
            yield from _named(value if given else attached if len(attached) >= _ATTACHED else "")
        else:
            _, assigned, value = word.partition("=")
            if assigned or valued or handles:
                yield from _named(value if assigned else word)
            valued = False


def runs_a_pattern(simple: SimpleCommand) -> bool:
    """Whether a shell fills in what is run: which file that is depends on what lies there."""
    return any(_PATTERN.intersection(name) for name in names_run(simple))


def _named(value: str) -> Iterator[str]:
    """The names in a value, which may be a list of several."""
    for piece in _LIST.split(value):
        name = piece.rstrip("/").rpartition("/")[2]
        if (
            len(name) >= _LEAST
            and not name.isdigit()
            and not is_common_word(name)
            and not is_known_program(piece)
        ):
            yield name


def _unknown(word: str) -> Iterator[str]:
    name = word.rstrip("/").rpartition("/")[2]
    if (
        name
        and name not in (".", "..")
        and not is_common_word(name)
        and ("/" in word or not is_known_program(word))
    ):
        yield name
