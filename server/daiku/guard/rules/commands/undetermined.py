"""Refuse commands whose programs cannot be determined before they run, where deny rules exist."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import pairwise

from daiku.dataclass import dataclass
from daiku.guard.rules.commands.bash import (
    HARMLESS_VARIABLES,
    ParsedCommands,
    SimpleCommand,
    Word,
    read_script,
)
from daiku.guard.rules.commands.inlinecode import (
    interprets_code,
    reads_code_from_stdin,
    starts_program,
    starts_unknown,
    stdin_may_start_unknown,
)
from daiku.guard.rules.commands.rules import denied_by, git_runs_settings, has_risky_option
from daiku.guard.rules.commands.wrappers import SHELLS, inner_commands, program_name, runs_others
from daiku.guard.rules.protected.names import needs_review
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

COMPUTED = text("commands.deny_computed")
CODE = text("commands.deny_code")
FED = text("commands.deny_fed")
UNREADABLE = text("commands.deny_unreadable")
TORN = text("commands.torn_hides")
_EVALUATES = lazy(r"""\$\{(?!\w+\})|\$\[|\(\(|\w=(?:\$?'[^']*(?:\$\(|`)|"[^"]*\\[$`])""")
"""Expansions whose result bash may run as a command: `${x@P}`, a default value, a subscript in arithmetic."""
_HOLDS_COMMAND = lazy(r"\$\(|`")
_TAKES_EXPRESSIONS = frozenset(
    ["let", "declare", "typeset", "local", "readonly", "unset", "mapfile", "readarray", "bind", "fc", "enable", "coproc"]
)  # fmt: skip
_COMPARES = lazy(r"(?:^|\s)-(?:v|R|eq|ne|lt|le|gt|ge)(?:\s|$)")
_ONLY_TEXT = frozenset(
    ["echo", "printf", "grep", "egrep", "fgrep", "rg", "git", "cat", "ls", "head", "tail", "wc", "which", "type", "man",
     "true"]
)  # fmt: skip
"""Programs for which a word is never the name of a program to start."""
_HAS_PAGER = frozenset({"git", "man"})
_REDIRECTED = lazy(r"(?<![\w$.-])(?:BASH_(?:CMDS|ALIASES)\b|[A-Za-z_]\w*\[(?!\d+\])[^\]\n]*\]\+?=)")
"""Assignments that change what a name runs, or whose subscript is calculated."""
_SEARCH_PATH = lazy(r"(?<![\w$-])PATH\+?=(?P<value>[^\s;&|]*)")
_SYSTEM_PATH = lazy(
    r"(?!.*\.\.|[\"']?/(?:tmp|var/tmp|dev|run|proc)\b)[\"']?(?:(?:(?:\$HOME|\$\{HOME\}|~)/\.|/)[\w./+-]+|\$PATH|\$\{PATH\})[\"']?"
)
_SYSTEM = ("/bin/", "/usr/", "/sbin/", "/lib", "/opt/", "/nix/", "/snap/")
_CODE_VARIABLE = lazy(
    r"PATH|PRELOAD|AUDIT|LIB|OPT|FLAGS|CONFIG|STARTUP|INIT|RC$|ENV$|DB$|EDITOR|VISUAL|PAGER|BROWSER|SHELL|COMMAND|CMD|WRAPPER"
    r"|RUNNER|EXEC|HOOK|HOME|ASKPASS|SSH|^MAKE|^GIT_(?!(?:AUTHOR|COMMITTER)_)|^BASH|^LD_|^PERL|^RUBY|^PYTHON|^LESS"
)
"""Names of variables by which programs take code, or look for it."""
_DATA = lazy(r"|\w[\w.:/@,+%-]*")
"""Values of variables that are no code."""
_LIST = lazy(r"[=,:]")
MOST_WORDS = 200
"""Words of a command that are looked at for the name of a denied program."""
_STDIN = lazy(r"(?:-f|--\w+=)?(?:-|/dev/stdin|/dev/fd/\d+|/proc/.*)")
_READS_TEXT = frozenset({*SHELLS, "source", "."})
_WITH_NAME = frozenset({"-O", "+O", "-o", "+o"})
"""Options of shells that take the name of an option."""
_BUILDS = frozenset({"make", "gmake", "just", "task", "ninja"})
_COPIES = frozenset({"tee", "cp", "mv", "ln", "install", "dd"})
_READS_FILES = _BUILDS | {"awk", "gawk", "sed", "docker", "at"}
_VALUE = re.compile(r"^\w+\+?=(?P<value>.+)$", re.DOTALL)
_REPLACE = re.compile(r"^(?:-I|-i|--replace=?)(?P<mark>.*)$")


@dataclass(frozen=True, slots=True)
class _Line:
    """Facts about a line, gathered once for all of its commands, of which there may be thousands."""

    several: bool
    """True if the line has more than one command."""
    fed: bool
    """True if the line contains the text of a stdin (`<<`, `<<<`)."""
    shows_stdin: bool
    """True if the line contains or prints a text that a command may read from its stdin."""
    starts_unknown: bool
    """True if such a text, run as code, may start a program that cannot be determined."""
    written: frozenset[str]
    """Names of the files that the line writes, with and without suffix."""


def why_denied(
    command: str,
    script: ParsedCommands,
    every: list[SimpleCommand],
    rules: tuple[str, ...],
    roots: tuple[str, ...],
) -> Text:
    """Return why the user's deny `rules` refuse what `every` command of the line would run; empty if they do not.

    A command that cannot be determined beforehand is refused as well.
    """
    if not rules:
        return NO_TEXT
    for simple in every:
        if rule := denied_by(simple, rules) or _in_disguise(simple, rules):
            return text("commands.settings_deny_rule", rule=rule)
    if _EVALUATES.search(command) or _REDIRECTED.search(command) or _changes_search_path(command, roots):
        return COMPUTED
    if any(len(simple.words) > MOST_WORDS for simple in every):
        return COMPUTED
    if script.torn:
        return TORN
    if script.broken:
        return UNREADABLE
    written = _list_written_files(script)
    if len(every) > 1 and any(map(needs_review, written)):
        return FED  # a program that follows may run it without naming it
    line = _describe_line(script, written)
    return next((why for simple in every if (why := _unknown(simple, line, roots))), NO_TEXT)


def _describe_line(script: ParsedCommands, written: list[str]) -> _Line:
    echoes = (s for s in script.commands if program_name(s.words) in ("echo", "printf"))
    stdin = (*script.fed, *(" ".join(s.texts[1:]) for s in echoes))
    names = {posixpath.basename(path) for path in written}
    return _Line(
        several=len(script.commands) > 1,
        fed=bool(script.fed),
        shows_stdin=bool(stdin),
        starts_unknown=any(map(starts_program, stdin)),
        written=frozenset(names | {posixpath.splitext(name)[0] for name in names}),
    )


def _in_disguise(simple: SimpleCommand, rules: tuple[str, ...]) -> str:
    """Return the rule whose program a word of the command names, or begins a word that holds a whole command."""
    values = [value.text for _, value in simple.assigned]
    values += [found["value"] for word in simple.words[1:] if (found := _VALUE.match(word.text))]
    for value in values:
        for inside in read_script(value).commands:
            if rule := denied_by(inside, rules):
                return rule
    name = program_name(simple.words)
    if name in _ONLY_TEXT and not (name in _HAS_PAGER and has_risky_option(simple.words)):
        return ""
    for at, word in enumerate(simple.words[1:MOST_WORDS], 1):
        for part in _list_possible_programs(word.text):
            inside = read_script(part).commands if " " in part else ()
            named = SimpleCommand((Word(part, word.plain), *simple.words[at + 1 :]))
            for command in (named, *inside):
                if rule := denied_by(command, rules):
                    return rule
    return ""


def _list_possible_programs(word: str) -> Iterator[str]:
    """Yield what an option may start: the word, the value of an option, and the parts of a list."""
    yield word
    yield word.partition("=")[2]
    if word.startswith("-"):
        yield word[2:]
    yield from _LIST.split(word) if _LIST.search(word) else ()


def _unknown(simple: SimpleCommand, line: _Line, roots: tuple[str, ...]) -> Text:
    words = simple.words
    values = (*words, *(value for _, value in simple.assigned))
    if any(word.plain and _HOLDS_COMMAND.search(word.text) for word in values):
        return COMPUTED  # quoted now, but bash expands it again in a prompt, a subscript, or an option
    if not words:
        return NO_TEXT
    if not words[0].plain or words[0].glob or any(word.glob and "bin/" in word.text for word in words):
        return COMPUTED
    name = program_name(words)
    if name in _TAKES_EXPRESSIONS or _compares_computed(words):
        return COMPUTED
    if "/" in words[0].text and not _is_of_system(words[0].text, roots):
        return CODE
    if starts_unknown(words) or name == "run-parts" or git_runs_settings(words):
        return CODE
    if stdin_may_start_unknown(words, shown=line.shows_stdin, starts=line.starts_unknown):
        return CODE
    if _runs_made_file(words, line.written) or _gives_code(simple):
        return FED
    piped = line.several or line.fed
    if piped and any(_STDIN.fullmatch(word.text) for word in words[1:]) and name in _READS_FILES:
        return FED
    if reads_code_from_stdin(words) and not line.shows_stdin and line.several:
        return FED
    if name in _READS_TEXT and _reads_unknown(words, line):
        return FED
    return FED if name in ("xargs", "parallel") and _takes_program(simple) else NO_TEXT


def _list_written_files(script: ParsedCommands) -> list[str]:
    """Return the files that the line writes itself: by redirection, or by a program that copies."""
    copied = [w.text for s in script.commands if program_name(s.words) in _COPIES for w in s.words[1:]]
    return [target.text for target in script.writes] + [name.removeprefix("of=") for name in copied]


def _runs_made_file(words: tuple[Word, ...], written: frozenset[str]) -> bool:
    """Return True if the code that a program reads may be in a file which the line itself makes (`written`)."""
    name = program_name(words)
    if name not in _READS_TEXT and name not in _BUILDS and not interprets_code(words):
        return False
    operands = [
        word.text
        for before, word in pairwise(words)
        if not (before.text in _WITH_NAME or word.text.startswith(("-", "+")))
    ][:1]
    operands += [after.text for word, after in pairwise(words) if word.text.startswith("-")]
    operands += [
        part for word in words[1:] if word.text.startswith("-") for part in _list_possible_programs(word.text)
    ]
    return any(
        operand.startswith("<(")
        or posixpath.basename(operand) in written
        or (written and operand in (".", "./"))
        for operand in operands
    )


def _changes_search_path(command: str, roots: tuple[str, ...]) -> bool:
    """Return True if a folder of the search path may be one of the workspace."""
    return any(
        not _SYSTEM_PATH.fullmatch(part) or any(part.strip("\"'").startswith(root) for root in roots)
        for change in _SEARCH_PATH.finditer(command)
        for part in change["value"].split(":")
    )


def _gives_code(simple: SimpleCommand) -> bool:
    """Return True if a variable that the command sets, also behind `env` and `export`, may hold or name code."""
    words = simple.words if program_name(simple.words) in ("env", "export") else ()
    pairs = [word.text.partition("=") for word in words if "=" in word.text]
    arguments = [(name, Word(value, plain=True)) for name, _, value in pairs]
    return any(
        name not in HARMLESS_VARIABLES
        and name != "PATH"
        and (_CODE_VARIABLE.search(name) or not value.plain or not _DATA.fullmatch(value.text))
        for name, value in (*(simple.assigned if simple.words else ()), *arguments)
    )


def _compares_computed(words: tuple[Word, ...]) -> bool:
    """Return True if a test calculates with a value that is not known."""
    tests = program_name(words) in ("test", "[", "[[")
    return (
        tests
        and any(not word.plain for word in words)
        and bool(_COMPARES.search(" ".join(word.text for word in words)))
    )


def _is_of_system(program: str, roots: tuple[str, ...]) -> bool:
    """Return True if commands cannot write the program: what they made elsewhere may be a copy of a denied one."""
    place = posixpath.normpath(program)
    return place.startswith(_SYSTEM) and not any(place.startswith(f"{root}/") for root in roots)


def _reads_unknown(words: tuple[Word, ...], line: _Line) -> bool:
    """Return True where a shell reads commands from a pipe or from a file that is made when it runs."""
    operands = [word for word in words[1:] if not word.text.startswith("-") and not word.text.isdigit()]
    commanded = any(
        w.text.startswith("-") and not w.text.startswith("--") and "c" in w.text for w in words[1:]
    )
    if (
        not operands and not commanded
    ):  # a text that is fed may be another command's, whose output this one reads
        return line.several
    first = operands[:1]
    return (
        any(not word.plain or word.text.startswith(("/dev/", "/proc/")) for word in first) and not commanded
    )


def _takes_program(simple: SimpleCommand) -> bool:
    """Return True where the program that xargs starts comes from what it reads."""
    marks = {found["mark"] or "{}" for w in simple.words[1:] if (found := _REPLACE.match(w.text))}
    marks |= {b.text for a, b in pairwise(simple.words) if a.text in ("-I", "-J")}
    for command in inner_commands(simple)[0]:
        if any(mark and mark in command.words[0].text for mark in marks):
            return True
        if runs_others(command.words) and inner_commands(command) == ((), ()):
            return True
    return False
