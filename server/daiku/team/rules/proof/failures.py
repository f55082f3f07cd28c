"""Which failed commands of a run are still open: only a later exit code closes one, not the model's word."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.judge import CommandRules, read_only
from daiku.guard.rules.commands.wrappers import SHELLS, inner_commands, program_name
from daiku.team.rules.proof.evidence import CANNOT_RUN, plain_command
from daiku.texts.rules.patterns import lazy


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command and its result. `exit_code`: None if it did not end; `stead`: the failed command that it replaces."""

    command: str
    ok: bool
    text: str
    call_id: str
    listed: bool = False
    stead: str = ""
    exit_code: int | None = None


LOOKING_AROUND = CommandRules(resolve=lambda path: path)
"""By which it is told whether a command only looks: whatever place it looks at."""
CONSTANT = frozenset({"true", "false", ":", "echo", "printf", "exit", "sleep"})
"""Programs whose exit code says nothing about the project."""
FILTERS = frozenset({"tail", "head", "tee", "cat", "less", "more", "sort", "wc"})
"""Programs that only pass on what is piped into them; the pipeline's exit code is theirs."""
INFORMS = frozenset({"--version", "-V", "--help", "-h", "--collect-only", "--co", "--dry-run", "--list"})
"""Options with which a program tells of itself and does none of its work."""


_NO_SUCH = lazy(
    r"^(?:.{0,80}: )?(?:command not found|\*{0,3} ?No rule to make target .*)$"
    r"|^(?:\S*python[\d.]*(?:\.exe)?: )?No module named |is not recognized as an internal or external command"
    r"|^npm (?:ERR!|error) [Mm]issing script|Justfile does not contain recipe"
    r"|^error(?:: | )(?:no such (?:sub)?command|unrecognized subcommand|[Ss]cript not found|Failed to spawn: )|^Command not found: ",
    re.MULTILINE,
)
"""Messages of shells and programs about a missing command, target, or script."""


def is_missing(exit_code: int, output: str) -> bool:
    """Return True if a command did not run because there is no such program, or no such part of it."""
    return exit_code in CANNOT_RUN or (exit_code != 0 and _NO_SUCH.search(output) is not None)


def open_failures(ran: Iterable[CommandRun]) -> tuple[CommandRun, ...]:
    """Return the failures that nothing has fixed, the oldest first.

    The same work or its replacement closes one by exit code 0, unless the command only looks or hides its exit code."""
    still: dict[str, CommandRun] = {}
    for each in ran:
        key = plain_command(each.command)
        replaced = still.get(plain_command(each.stead)) if each.stead else None
        if not each.ok:
            if each.listed or not is_lookup(each.command):
                still.pop(key, None)
                if replaced is not None and not _idle(each.command):
                    still.pop(plain_command(replaced.command), None)
                still[key] = each
            continue
        if hides_exit_code(each.command):
            continue
        for command, failed in list(still.items()):
            if same_work(failed.command, each.command) or (failed is replaced and _replaces(each, failed)):
                del still[command]
    return tuple(still.values())


def is_lookup(command: str) -> bool:
    """Whether a command only looks at something."""
    return read_only(command, LOOKING_AROUND) and not _idle(command)


def _idle(command: str) -> bool:
    """Whether a command does nothing but end with the same exit code always."""
    commands = read_script(command).commands
    return bool(commands) and all(program_name(each.words) in CONSTANT for each in commands)


def _replaces(later: CommandRun, failed: CommandRun) -> bool:
    if _idle(later.command) or _informs(later.command):
        return False
    return not is_lookup(later.command) or is_lookup(failed.command)


def _informs(command: str) -> bool:
    return any(word in INFORMS for each in read_script(command).commands for word in each.texts[1:])


def same_work(failed: str, later: str) -> bool:
    """Return True if two commands do the same work, apart from options, wrappers, and the program's version."""
    if plain_command(failed) == plain_command(later):
        return True
    ours, theirs = _work(failed), _work(later)
    return bool(ours) and ours == theirs and not _informs(later)


def _work(command: str) -> tuple[tuple[str, ...], ...]:
    script = read_script(re.sub(r"^\s*(?:\w+=[^\s$`(]*\s+)+", "", command))
    if script.doubts:
        return ()
    return tuple(_words([word.text for word in each.words]) for each in script.commands)


_WRAPPING = frozenset({"env", "time", "timeout", "nice", "nohup", "stdbuf", "command", "exec"})
_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})


def _words(texts: list[str]) -> tuple[str, ...]:
    while texts and (texts[0] in _WRAPPING or re.fullmatch(r"\w+=.*|-\S+|\d+[smh]?", texts[0])):
        texts = texts[1:]
    if not texts:
        return ()
    name = re.sub(r"(?<=[a-z])[\d.]+$", "", texts[0].rpartition("/")[2].removesuffix(".exe"))
    name = "sh" if name in SHELLS else "python" if name == "py" else name
    rest = texts[1:]
    if name == "python" and rest[:1] == ["-m"]:
        return _words(rest[1:])
    if name in _RUNNERS:
        rest = [word for word in rest if word != "run"]
    return (name, *(word for word in rest if not word.startswith("-")))


# ---- exit codes that say nothing of the work before them


def hides_exit_code(command: str, depth: int = 2) -> bool:
    """Return True if the exit code is not that of the work: `… || true`, `…; echo $?`, `… | tail`."""
    parts = _parts(command)
    if len(parts) < 2:
        return depth > 0 and any(
            hides_exit_code(text, depth - 1)
            for each in read_script(command).commands
            if program_name(each.words) in SHELLS
            for text in inner_commands(each)[1]
        )
    operator, last = parts[-1]
    if all(_idle(line) or is_lookup(line) for line in (shlex.join(words) for _, words in parts[:-1])):
        return False
    if operator in ("||", ";", "\n", "&") and last[0] in CONSTANT:
        return last[0] not in ("exit", "false") or last[1:2] == ["0"]
    if operator not in ("|", "|&") or last[0].rpartition("/")[2] not in FILTERS:
        return False
    piped = [words for _, words in parts[:-1]]
    return not any("pipefail" in words for words in piped) and not is_lookup(shlex.join(_fed(parts)))


def _fed(parts: Sequence[tuple[str, list[str]]]) -> list[str]:
    """The program at the head of the pipeline that ends a command."""
    at = len(parts) - 1
    while at > 0 and parts[at][0] in ("|", "|&"):
        at -= 1
    return parts[at][1]


def _parts(command: str) -> list[tuple[str, list[str]]]:
    """The simple commands of a line as words, each with the operator before it; empty where it cannot be read."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&\n()")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    parts: list[tuple[str, list[str]]] = []
    operator, words = "", list[str]()
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    for token in tokens:
        if token.strip("|;&\n()") and not re.fullmatch(r"[{}]", token):
            words.append(token)
            continue
        if words:
            parts.append((operator, words))
            words = []
        operator = re.sub(r"[()]", "", token).strip("\n") or ("\n" if "\n" in token else operator)
    if words:
        parts.append((operator, words))
    return [(before, [w for w in each if not re.fullmatch(r"\w+=.*", w)] or each) for before, each in parts]
