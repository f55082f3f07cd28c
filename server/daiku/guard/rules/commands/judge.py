"""What a shell command would do, judged from its whole syntax tree: allow, ask or deny."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from daiku.dataclass import dataclass, replace
from daiku.domain.config import Answer
from daiku.guard.rules.commands.bash import ParsedCommands, SimpleCommand, Word, read_script
from daiku.guard.rules.commands.catastrophe import (
    CommandScope,
    scope_after,
    why_never_allowed,
    why_redirect_denied,
)
from daiku.guard.rules.commands.dangers import changes_daiku, dangers, lookalikes
from daiku.guard.rules.commands.readonly import candidates, reads_only, reads_settings
from daiku.guard.rules.commands.rules import (
    allowed_by,
    git_prints_files,
    goes_where_configured,
    has_risky_option,
    wants_network,
)
from daiku.guard.rules.commands.undetermined import TORN, why_denied
from daiku.guard.rules.commands.wrappers import SHELLS, inner_commands, program_name
from daiku.guard.rules.protected.names import explain_protection, holds_secrets
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, joined, text


@dataclass(frozen=True, slots=True)
class CommandRules:
    """Rules and scope for judging commands.

    `allow` and `deny` are the person's, as words that a command begins with. `resolve` gives a path's real name
    relative to its root, None where it is outside; `closed` whether a path is closed to the agent (.daikuignore).
    """

    resolve: Callable[[str], str | None]
    closed: Callable[[str], bool] = lambda _: False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    home: str = ""
    folder: str = ""
    """Where the command starts; empty: in the first root."""
    contained: bool = True
    """True where a sandbox holds what a read-only command may start (git's filters)."""
    own: bool = True
    """True where the user trusts the folder: what its git settings start is the user's own."""


LOOKING = CommandRules(resolve=str)
"""For those who only ask whether a command changes something."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`answer` before settings and grants: allow = harmless or allowed by the person's list.

    `key` is what "always" remembers, the whole line; empty = cannot be remembered.
    `secret`: it names a file of secrets, or one that is closed to the agent. `understood`: the whole tree was read. `network`: it wants the network. `protected`: it would change
    protected files. `read_only`: every part only reads. `records`: no part prints the text of a file from git's history.
    `configured`: it reaches nothing but what the user's settings name.
    """

    answer: Answer
    why: Text
    key: str = ""
    secret: bool = False
    understood: bool = False
    network: bool = False
    protected: bool = False
    read_only: bool = False
    records: bool = False
    configured: bool = False


MAX_LENGTH = 16_000
MOST_WORDS = 200
"""Different words of a command that are looked up on the disk; a longer command is asked about unread."""
MAX_BLANKS = 120
MAX_BLANK_LINES = 12
MAX_NESTED = 400
_BLANKS = lazy(rf"[^\S\n]{{{MAX_BLANKS},}}")
_BLANK_LINES = lazy(rf"(?:[^\S\n]*\n){{{MAX_BLANK_LINES},}}")
_HIDING = lazy(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def why_not_visible(command: str) -> Text:
    """Why a person could not see all of `command`, or an empty string."""
    if not command.strip():
        return text("commands.empty")
    if len(command) > MAX_LENGTH:
        return text("commands.too_long", count=len(command), most=MAX_LENGTH)
    for char in command:
        if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t":
            return text("commands.control_character", code=f"{ord(char):04X}")
    if found := _HIDING.search(command):
        return text("commands.invisible_character", code=f"{ord(found[0]):04X}")
    if _BLANKS.search(command) or _BLANK_LINES.search(command):
        return text("commands.long_blanks")
    return NO_TEXT


def judge(command: str, rules: CommandRules, stdin: str = "") -> Judgement:
    """Judge `command`, a line for bash that reads `stdin`."""
    if why := why_not_visible(command):
        return Judgement("deny", why)
    script = read_script(command)
    if stdin:
        script = replace(script, fed=(*script.fed, stdin))
    every = _every(script)
    if every is None:
        return Judgement("deny", text("commands.nested_too_deeply"))
    if why := _never(command, script, every, rules):
        return Judgement("deny", why)
    network = any(wants_network(s.words) for s in every)
    told = (*lookalikes(every), *dangers(every))
    if (count := len({word.text for simple in every for word in simple.words})) > MOST_WORDS:
        why = text("commands.too_many_words", count=count, most=MOST_WORDS)
        return Judgement("ask", joined("clauses", [why, *told]), secret=True, network=network)
    rules = replace(rules, resolve=cache(rules.resolve), closed=cache(rules.closed))
    if why := _protected(script, every, rules):
        return Judgement("ask", joined("clauses", [why, *told]), network=network, protected=True)
    if script.doubts or not script.commands:
        doubt = next(iter(script.doubts), text("commands.is_empty"))
        return Judgement(
            "ask",
            joined("clauses", [text("commands.needs_a_look", what=doubt), *told]),
            secret=any(_names_secrets(s) or _names_closed(s, rules) for s in every),
            network=network,
        )
    return _parts(script, rules, network=network, told=told, key=grant_line(command, script, every))


def _parts(
    script: ParsedCommands, rules: CommandRules, *, network: bool, told: tuple[Text, ...], key: str
) -> Judgement:
    open_parts: list[SimpleCommand] = []
    all_read = True
    any_secret = any_closed = False
    records = True
    for part in script.commands:
        closed, reads = _names_closed(part, rules), _reads(part, rules)
        is_git = program_name(part.words) == "git"
        records = records and (not git_prints_files(part.words) if is_git else reads)
        reads = reads and not closed
        secret = _names_secrets(part) or closed
        any_closed = any_closed or closed
        all_read = all_read and reads
        any_secret = any_secret or secret
        if not reads and (secret or not allowed_by(part, rules.allow)):
            open_parts.append(part)
    if not open_parts:
        why = text("commands.only_reads") if all_read else text("commands.settings_allow")
        return Judgement(
            *("allow", why),
            understood=True,
            network=network and not all_read,
            read_only=all_read,
            records=records,
        )
    names = ", ".join(dict.fromkeys(program_name(p.words) or "?" for p in open_parts))
    what = text("commands.names_closed" if any_closed else "commands.names_secrets")
    secrets = what if any_secret else NO_TEXT
    why = joined("clauses", [text("guard.runs", names=names), secrets, *told])
    configured = all(goes_where_configured(p.words) or _reads(p, rules) for p in script.commands)
    return Judgement(
        *("ask", why, "" if any_secret else key),
        secret=any_secret,
        understood=True,
        network=network,
        records=records,
        configured=configured,
    )


def _reads(part: SimpleCommand, rules: CommandRules) -> bool:
    return reads_only(part.words, rules.resolve, contained=rules.contained, own=rules.own)


def _names_secrets(part: SimpleCommand) -> bool:
    return any(holds_secrets(c) for w in part.words[1:] for c in candidates(w.text))


def _names_closed(part: SimpleCommand, rules: CommandRules) -> bool:
    return any(c and rules.closed(c) for w in part.words[1:] for c in candidates(w.text))


def read_only(command: str, rules: CommandRules) -> bool:
    """Report whether every part of `command` only reads, so it can run on a read-only file system."""
    return judge(command, rules).read_only


def _every(script: ParsedCommands) -> list[SimpleCommand] | None:
    """Return the script's commands, and those that wrappers, shells, and `eval` run in turn; None if too many."""
    found: list[SimpleCommand] = []
    pending = list(reversed(script.commands))
    texts = 0
    if any(
        program_name(s.words) in SHELLS or program_name(s.words) in ("source", ".", "eval", "xargs")
        for s in script.commands
    ):
        said = [
            " ".join(s.texts[1:])
            for s in script.commands
            if program_name(s.words) in ("echo", "printf", "cat")
        ]
        for fed in (*script.fed, *said):
            nested = read_script(fed)
            pending.extend(nested.commands)
    while pending:
        simple = pending.pop()
        found.append(simple)
        commands, lines = inner_commands(simple)
        pending.extend(commands)
        for line in lines:
            texts += 1
            pending.extend(read_script(line).commands)
        if len(found) > MAX_NESTED + 4 * len(script.commands) or texts > MAX_NESTED:
            return None
    return found


def _never(command: str, script: ParsedCommands, every: list[SimpleCommand], rules: CommandRules) -> Text:
    if script.bomb:
        return text("commands.starts_itself")
    place = CommandScope(
        rules.folder or next(iter(rules.roots), None), rules.roots, rules.home, rules.contained
    )
    if script.torn and not rules.contained:
        return text("commands.refused_always", why=TORN)
    for simple in every:
        if why := why_never_allowed(simple, place):
            return text("commands.refused_always", why=why)
        place = scope_after(simple, place)
    for target in script.writes:
        if why := why_redirect_denied(target.text):
            return text("commands.refused_always", why=why)
    return why_denied(command, script, every, rules.deny, rules.roots)


# What these do with a protected file is to record or show it.
_KEEPS = {"add", "commit", "diff", "log", "show", "status", "blame", "ls-files", "stash", "check-ignore"}
# Whatever their options, these do not write to the files that they name.
_ONLY_READ = frozenset(
    ["echo", "printf", "test", "[", "[[", "cat", "less", "more", "head", "tail", "grep", "rg", "ls", "wc", "stat", "file",
     "diff", "bat", "source", ".", "true", "false"]
)  # fmt: skip


def _protected(script: ParsedCommands, every: list[SimpleCommand], rules: CommandRules) -> Text:
    for target in script.writes:
        if why := _why(target, rules):
            return text("commands.writes_protected", path=target.text, why=why)
    for simple in every:
        words = simple.words
        name = program_name(words)
        sub = next((w.text for w in words[1:] if not w.text.startswith("-")), "")
        if name == "git" and sub == "config" and not reads_settings(tuple(w.text for w in words[1:])):
            return text("commands.git_settings")
        if changes_daiku(simple):
            return text("commands.own_program")
        if name == "git" and sub in _KEEPS:
            continue
        if reads_only(words, rules.resolve, contained=True) or name in _ONLY_READ:
            continue
        for word in words[1:]:
            if why := _why(word, rules):
                return text("commands.touches_protected", path=word.text, why=why)
    return NO_TEXT


def _why(word: Word, rules: CommandRules) -> Text:
    for name in candidates(word.text):
        if not name or "://" in name:
            continue
        if why := explain_protection(name):
            return why
        real = rules.resolve(name) if word.plain and not word.glob else None
        if real and (why := explain_protection(real)):
            return why
    return NO_TEXT


@dataclass(frozen=True, slots=True)
class StrippedCommand:
    """A command without its leading `cd`: the folder that it asked for, and what is left to run.

    `refusal` says why it cannot be run.
    """

    command: str
    folder: str = ""
    refusal: Text = NO_TEXT


_CD = lazy(r"^\s*(?:cd|pushd|chdir)(?=\s|$|[;&|])")
_CD_HEAD = lazy(
    r"^\s*(?:cd|chdir)\s+(?:--\s+)?(?P<folder>\"[^\"$`\\]*\"|'[^']*'|[^\s;&|<>()$`\"'\\*?\[{]+)\s*(?:&&|;|\n)\s*(?P<rest>.*)$",
    re.DOTALL,
)


def strip_cd(command: str) -> StrippedCommand:
    """Take leading `cd FOLDER &&` off: every command starts in the project, and says where it runs."""
    folder = ""
    rest = command
    while _CD.match(rest):
        found = _CD_HEAD.match(rest)
        if found is None or not found["rest"].strip():
            return StrippedCommand(command, refusal=text("commands.begins_with_cd"))
        step = found["folder"].strip("\"'")
        if step.startswith("-"):
            return StrippedCommand(command, refusal=text("commands.begins_with_cd"))
        folder = step if step.startswith(("/", "~")) or not folder else f"{folder}/{step}"
        rest = found["rest"]
    return StrippedCommand(rest if folder else command, folder)


_FOLDER_CHANGERS = frozenset({"cd", "chdir", "pushd", "popd"})


def changes_folder(command: str) -> bool:
    """Report whether `command` changes the folder anywhere, also in a subshell, `sh -c`, `eval`, or a wrapper.

    True if it is nested too deeply to tell.
    """
    every = _every(read_script(command))
    return every is None or any(program_name(simple.words) in _FOLDER_CHANGERS for simple in every)


def prints_history(command: str) -> bool:
    """Return True if git may print the text of a file anywhere in `command`, or if it is nested too deeply to tell."""
    script = read_script(command)
    every = _every(script)
    if every is None or any(git_prints_files(simple.words) for simple in every):
        return True
    # Variables and settings may name another work tree, into which git would write closed files.
    plain = not script.doubts and not any("GIT_" in text for simple in every for text in simple.texts)
    return not plain and any(program_name(simple.words) == "git" for simple in every)


def grant_line(command: str, script: ParsedCommands, every: list[SimpleCommand]) -> str:
    """Return the line to store when `command` is always allowed; empty if it must not be stored.

    That is so if it was not fully parsed, depends on its folder, deletes, or runs downloaded code.
    """
    if script.doubts or dangers(every):
        return ""
    if any(not word.plain or word.glob for simple in script.commands for word in simple.words):
        return ""
    return "" if any(has_risky_option(simple.words) for simple in every) else command.strip()
