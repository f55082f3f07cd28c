"""Find the failed commands of a run that are still open: only a later exit code closes one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.judge import CommandRules, read_only
from daiku.guard.rules.commands.wrappers import SHELLS, inner_commands, program_name
from daiku.team.rules.proof.evidence import CANNOT_RUN, normalize_command
from daiku.texts.rules.patterns import lazy


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command and its result.

    `exit_code`: None if it did not end; `replaces`: the failed command that it replaces, if any; `is_queued`: it was on the
    runner's list.
    """

    command: str
    ok: bool
    text: str
    call_id: str
    is_queued: bool = False
    replaces: str = ""
    exit_code: int | None = None


LOOKING_AROUND = CommandRules(resolve=lambda path: path)
"""Rules for recognizing commands that only read, at any path."""
CONSTANT = frozenset({"true", "false", ":", "echo", "printf", "exit", "sleep"})
"""Programs whose exit code says nothing about the project."""
FILTERS = frozenset({"tail", "head", "tee", "cat", "less", "more", "sort", "wc"})
"""Programs that pass their input on; the exit code of the pipeline is theirs."""
INFORMS = frozenset({"--version", "-V", "--help", "-h", "--collect-only", "--co", "--dry-run", "--list"})
"""Options that make a program describe itself instead of doing its work."""


_NO_SUCH = lazy(
    r"^(?:.{0,80}: )?(?:command not found|\*{0,3} ?No rule to make target .*)$"
    r"|^(?:\S*python[\d.]*(?:\.exe)?: )?No module named |is not recognized as an internal or external command"
    r"|^npm (?:ERR!|error) [Mm]issing script|Justfile does not contain recipe"
    r"|^error(?:: | )(?:no such (?:sub)?command|unrecognized subcommand|[Ss]cript not found|Failed to spawn: )|^Command not found: ",
    re.MULTILINE,
)
"""Messages of shells and programs about a missing command, target, or script."""


def is_missing(exit_code: int, output: str) -> bool:
    """Return True if a command did not run because the program, or a part of it, does not exist."""
    return exit_code in CANNOT_RUN or (exit_code != 0 and _NO_SUCH.search(output) is not None)


def find_open_failures(command_runs: Iterable[CommandRun]) -> tuple[CommandRun, ...]:
    """Return the failures that nothing has fixed, the oldest first.

    Exit code 0 of the same work or its replacement closes one, unless that command only reads or hides its exit code.
    """
    open_by_command: dict[str, CommandRun] = {}
    for command_run in command_runs:
        key = normalize_command(command_run.command)
        replaced_run = (
            open_by_command.get(normalize_command(command_run.replaces)) if command_run.replaces else None
        )
        if not command_run.ok:
            if command_run.is_queued or not is_lookup(command_run.command):
                open_by_command.pop(key, None)
                if replaced_run is not None and not _is_idle(command_run.command):
                    open_by_command.pop(normalize_command(replaced_run.command), None)
                open_by_command[key] = command_run
            continue
        if hides_exit_code(command_run.command):
            continue
        for command, failed in list(open_by_command.items()):
            if is_same_work(failed.command, command_run.command) or (
                failed is replaced_run and _can_replace(command_run, failed)
            ):
                del open_by_command[command]
    return tuple(open_by_command.values())


def is_lookup(command: str) -> bool:
    """Return True if a command only reads."""
    return read_only(command, LOOKING_AROUND) and not _is_idle(command)


def _is_idle(command: str) -> bool:
    """Return True if a command does no work and always ends with the same exit code."""
    commands = read_script(command).commands
    return bool(commands) and all(program_name(simple.words) in CONSTANT for simple in commands)


def _can_replace(later: CommandRun, failed: CommandRun) -> bool:
    if _is_idle(later.command) or _is_informational(later.command):
        return False
    return not is_lookup(later.command) or is_lookup(failed.command)


def _is_informational(command: str) -> bool:
    return any(word in INFORMS for simple in read_script(command).commands for word in simple.texts[1:])


def is_same_work(failed: str, later: str) -> bool:
    """Return True if two commands do the same work, apart from options, wrappers, and the program's version."""
    if normalize_command(failed) == normalize_command(later):
        return True
    failed_work, later_work = _normalize_work(failed), _normalize_work(later)
    return bool(failed_work) and failed_work == later_work and not _is_informational(later)


def _normalize_work(command: str) -> tuple[tuple[str, ...], ...]:
    script = read_script(re.sub(r"^\s*(?:\w+=[^\s$`(]*\s+)+", "", command))
    if script.doubts:
        return ()
    return tuple(_normalize_words([word.text for word in simple.words]) for simple in script.commands)


_WRAPPING = frozenset({"env", "time", "timeout", "nice", "nohup", "stdbuf", "command", "exec"})
_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})


def _normalize_words(texts: list[str]) -> tuple[str, ...]:
    while texts and (texts[0] in _WRAPPING or re.fullmatch(r"\w+=.*|-\S+|\d+[smh]?", texts[0])):
        texts = texts[1:]
    if not texts:
        return ()
    name = re.sub(r"(?<=[a-z])[\d.]+$", "", texts[0].rpartition("/")[2].removesuffix(".exe"))
    name = "sh" if name in SHELLS else "python" if name == "py" else name
    rest = texts[1:]
    if name == "python" and rest[:1] == ["-m"]:
        return _normalize_words(rest[1:])
    if name in _RUNNERS:
        rest = [word for word in rest if word != "run"]
    return (name, *(word for word in rest if not word.startswith("-")))


# ---- hidden exit codes


def hides_exit_code(command: str, depth: int = 2) -> bool:
    """Return True if the exit code is not that of the work: `… || true`, `…; echo $?`, `… | tail`."""
    parts = _split_parts(command)
    if len(parts) < 2:
        return depth > 0 and any(
            hides_exit_code(text, depth - 1)
            for simple in read_script(command).commands
            if program_name(simple.words) in SHELLS
            for text in inner_commands(simple)[1]
        )
    operator, last = parts[-1]
    if all(_is_idle(line) or is_lookup(line) for line in (shlex.join(words) for _, words in parts[:-1])):
        return False
    if operator in ("||", ";", "\n", "&") and last[0] in CONSTANT:
        return last[0] not in ("exit", "false") or last[1:2] == ["0"]
    if operator not in ("|", "|&") or last[0].rpartition("/")[2] not in FILTERS:
        return False
    piped = [words for _, words in parts[:-1]]
    return not any("pipefail" in words for words in piped) and not is_lookup(
        shlex.join(_find_pipeline_head(parts))
    )


def _find_pipeline_head(parts: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return the program at the head of the pipeline that ends a command."""
    index = len(parts) - 1
    while index > 0 and parts[index][0] in ("|", "|&"):
        index -= 1
    return parts[index][1]


def _split_parts(command: str) -> list[tuple[str, list[str]]]:
    """Split a line into simple commands, each with the operator before it; empty if it cannot be parsed."""
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
    return [
        (part_operator, [w for w in part_words if not re.fullmatch(r"\w+=.*", w)] or part_words)
        for part_operator, part_words in parts
    ]
