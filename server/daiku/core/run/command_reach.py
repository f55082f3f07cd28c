"""Reach of a command: whether it may change files of the workspace, and whether it may have effects elsewhere. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from daiku.core.commands.bash import SimpleCommand, read_script
from daiku.core.commands.judge import LOOKING, every_command, read_only
from daiku.core.commands.network import CLIENTS
from daiku.core.commands.wrappers import SHELLS, program_name
from daiku.core.run.check_runs import check_intent

_CHECKING = ("test", "types", "build")
"""Purposes of commands whose changes of files are by-products. A linter may change what it checks."""
_GIT_ON_FILES = frozenset({"apply", "checkout", "clean", "restore"})
_NOT_ONLY_FILES = frozenset(
    {"-b", "-B", "--orphan", "--detach", "--staged", "-S", "--cached", "--index", "-3", "--3way"}
)
"""Options with which these sub-commands of git also change its index or a branch."""
_FILE_PROGRAMS = frozenset(
    ["sed", "gsed", "perl", "awk", "gawk", "tee", "patch", "truncate", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "touch", "chmod",
     "black", "isort", "ruff", "prettier", "biome", "eslint", "gofmt", "rustfmt", "clang-format", "dos2unix"]
)  # fmt: skip
"""Programs that change files and nothing else. Any other program may have an effect elsewhere."""
_SYSTEM = ("/bin/", "/usr/", "/opt/", "/sbin/")
_PLACES = ("/", "~/", "../", "$HOME", "${HOME}")
"""Beginnings of paths that may lie outside the workspace."""
_SCRATCH = ("/dev/", "/tmp/", "/proc/")  # noqa: S108  # what lies there is no result


def may_change_files(command: str) -> bool:
    """Return False if `command` only reads, or only tests, checks types, or builds."""
    if read_only(command, LOOKING):
        return False
    script = read_script(command)
    if script.broken or script.doubts or any(not _is_scratch(word.text) for word in script.writes):
        return True
    return any(map(_may_change, script.commands))


def _may_change(part: SimpleCommand) -> bool:
    line = shlex.join(part.texts)
    intent = check_intent(line)
    return not read_only(line, LOOKING) and (intent is None or intent.purpose not in _CHECKING)


def acts_only_on_files(command: str, is_elsewhere: Callable[[str], bool], *, contained: bool) -> bool:
    """Return True if all that `command` may change is files of the workspace. `contained`: a sandbox without network
    confines it. `is_elsewhere` tells whether a word is a path outside the workspace."""
    script = read_script(command)
    every = every_command(script)
    if every is None or any(map(_reaches_service, every)):
        return False
    if contained:
        return True
    words = [*script.writes, *(word for simple in every for word in simple.words[1:])]
    places = (word.text for word in words if word.text.startswith(_PLACES))
    return not any(map(_runs_unknown, every)) and not any(
        is_elsewhere(place) for place in places if not _is_scratch(place)
    )


def _reaches_service(simple: SimpleCommand) -> bool:
    """Return True for git's own records and for requests to servers, which a sandboxed command reaches too."""
    name = program_name(simple.words)
    if name == "git":
        texts = simple.texts[1:]
        sub = next((word for word in texts if not word.startswith("-")), "")
        return sub not in _GIT_ON_FILES or not _NOT_ONLY_FILES.isdisjoint(texts)
    return name in CLIENTS


def _runs_unknown(simple: SimpleCommand) -> bool:
    """Return True unless the program is known to change files only. What a shell runs in turn is judged for itself."""
    if not simple.words:
        return False
    name, first = program_name(simple.words), simple.texts[0]
    if "/" in first and not first.startswith(_SYSTEM):
        return True
    if name in SHELLS:
        return not any(word.startswith("-") and word.endswith("c") for word in simple.texts[1:])
    return name not in _FILE_PROGRAMS and name != "git" and not read_only(shlex.join(simple.texts), LOOKING)


def _is_scratch(text: str) -> bool:
    return text.startswith(_SCRATCH)
