"""The names of what a command runs: its program, the script of an interpreter, the target of a task runner."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.wrappers import SHELLS, program_name
from daiku.core.playbook.doubts.known_commands import is_common_word, is_known_program

_READ_IT = frozenset(
    ["python", "python3", "node", "ruby", "perl", "php", "deno", "bun", "java", "source", ".", "make", "just", "task", "rake",
     "gradle", "mvn", "mix", "npm", "pnpm", "yarn", "tox", "nox", "go", "cargo", "dotnet", "ant", "invoke", "inv", "poe"]
) | SHELLS  # fmt: skip
"""Programs that do what a file of the project says: their words name it."""
_PATTERN = frozenset("*?[{")


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


def runs_a_pattern(simple: SimpleCommand) -> bool:
    """Whether a shell fills in what is run: which file that is depends on what lies there."""
    return any(_PATTERN.intersection(name) for name in names_run(simple))


def _unknown(word: str) -> Iterator[str]:
    name = word.rstrip("/").rpartition("/")[2]
    if (
        name
        and name not in (".", "..")
        and not is_common_word(name)
        and ("/" in word or not is_known_program(word))
    ):
        yield name
