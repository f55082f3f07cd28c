"""Refuse commands whose programs cannot be determined before they run, where deny rules exist."""

from __future__ import annotations

import posixpath
import re

from daiku.core.commands.bash import ParsedCommands, SimpleCommand, read_script
from daiku.core.commands.inlinecode import reads_code_from_stdin, starts_unknown, stdin_may_start_unknown
from daiku.core.commands.rules import denied_by, rule_words
from daiku.core.commands.words import Word
from daiku.core.commands.wrappers import SHELLS, inner_commands, program_name, runs_others
from daiku.texts.text import NO_TEXT, Text, text

COMPUTED = text("commands.deny_computed")
CODE = text("commands.deny_code")
FED = text("commands.deny_fed")
UNREADABLE = text("commands.deny_unreadable")
TORN = text("commands.torn_hides")
_READS_TEXT = frozenset({*SHELLS, "source", "."})
_RENAMES = frozenset(["cp", "ln", "mv", "install", "hash", "alias", "enable", "dd", "rsync"])
_VALUE = re.compile(r"^\w+\+?=(?P<value>.+)$", re.DOTALL)
_REPLACE = re.compile(r"^(?:-I|-i|--replace=?)(?P<mark>.*)$")


def why_denied(script: ParsedCommands, every: list[SimpleCommand], rules: tuple[str, ...]) -> Text:
    """Why the person's deny `rules` refuse what `every` command of the line would run; empty where they
    do not. What cannot be known beforehand is refused as well."""
    if not rules:
        return NO_TEXT
    for simple in every:
        if rule := denied_by(simple, rules) or _in_disguise(simple, rules):
            return text("commands.settings_deny_rule", rule=rule)
    if script.torn:
        return TORN
    if script.broken:
        return UNREADABLE
    return next((why for simple in every if (why := _unknown(simple, script))), NO_TEXT)


def _in_disguise(simple: SimpleCommand, rules: tuple[str, ...]) -> str:
    """The rule whose program a variable names (EDITOR='rm x') or another name is made for (ln -s /bin/rm x)."""
    values = [value.text for _, value in simple.assigned]
    values += [found["value"] for word in simple.words[1:] if (found := _VALUE.match(word.text))]
    for value in values:
        for inside in read_script(value).commands:
            if rule := denied_by(inside, rules):
                return rule
    if program_name(simple.words) not in _RENAMES:
        return ""
    named = {posixpath.basename(word.text.rpartition("=")[2]) for word in simple.words[1:]}
    return next((rule for rule in rules if len(rule_words(rule)) == 1 and rule_words(rule)[0] in named), "")


def _unknown(simple: SimpleCommand, script: ParsedCommands) -> Text:
    words = simple.words
    if not words:
        return NO_TEXT
    if not words[0].plain or words[0].glob:
        return COMPUTED
    if starts_unknown(words):
        return CODE
    said = tuple(
        " ".join(s.texts[1:]) for s in script.commands if program_name(s.words) in ("echo", "printf")
    )
    if stdin_may_start_unknown(words, (*script.fed, *said)):
        return CODE
    if reads_code_from_stdin(words) and not script.fed and not said and len(script.commands) > 1:
        return FED
    name = program_name(words)
    if name in _READS_TEXT and _reads_unknown(words, script):
        return FED
    return FED if name in ("xargs", "parallel") and _takes_program(simple) else NO_TEXT


def _reads_unknown(words: tuple[Word, ...], script: ParsedCommands) -> bool:
    """True where a shell reads commands from a pipe or from a file that is made when it runs."""
    operands = [word for word in words[1:] if not word.text.startswith("-")]
    commanded = any(
        w.text.startswith("-") and not w.text.startswith("--") and "c" in w.text for w in words[1:]
    )
    if (
        not operands and not commanded
    ):  # a text that is fed may be another command's, whose output this one reads
        return len(script.commands) > 1
    first = operands[:1]
    return (
        any(not word.plain or word.text.startswith(("/dev/", "/proc/")) for word in first) and not commanded
    )


def _takes_program(simple: SimpleCommand) -> bool:
    """True where the program that xargs starts comes from what it reads."""
    marks = {found["mark"] or "{}" for w in simple.words[1:] if (found := _REPLACE.match(w.text))}
    marks |= {b.text for a, b in zip(simple.words, simple.words[1:], strict=False) if a.text in ("-I", "-J")}
    for command in inner_commands(simple)[0]:
        if any(mark and mark in command.words[0].text for mark in marks):
            return True
        if runs_others(command.words) and inner_commands(command) == ((), ()):
            return True
    return False
