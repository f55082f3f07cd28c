"""Decide whether a command, with its options, only reads; anything not in the tables counts as writing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from daiku.guard.rules.commands.bash import Word
from daiku.guard.rules.commands.wrappers import FIND, GIT, PROGRAMS, Flags, program_name
from daiku.guard.rules.protected.names import SECRET_SAMPLES, holds_secrets
from daiku.texts.rules.patterns import lazy

Resolve = Callable[[str], str | None]


# Sub-commands that only read when their first operand says so.
_GIT_FIRST = {"stash": "list", "worktree": "list", "reflog": "show"}
_PRINT = lazy(r"(?:\d+|\$)(?:,(?:\d+|\$))?p(?:;(?:\d+|\$)(?:,(?:\d+|\$))?p)*")
_SUBSTITUTED = lazy(r"[$`]|[<>]\(")


def reads_only(words: tuple[Word, ...], resolve: Resolve, *, contained: bool, own: bool = False) -> bool:
    """Return True if the command of `words` changes nothing and reads nothing secret or outside.

    `contained`: a sandbox holds the programs that a hostile repository makes git start; `own`: no hostile one.
    """
    name = program_name(words)
    if not words or words[0].text != name or name not in PROGRAMS or not all(w.plain for w in words):
        return False
    args = words[1:]
    pattern = _pattern(name, args)
    if not all(
        _operand_is_harmless(w, resolve, path=w is not pattern and name not in _NO_PATHS) for w in args
    ):
        return False
    # Without a sandbox nothing stops a link among the names that a glob or a search through folders meets.
    if not contained and (any(w.glob for w in args) or _follows_links(name, args)):
        return False
    match name:
        case "git":
            return (contained or own) and _git(args)
        case "find":
            return all(
                w.text in FIND or w.text in ("!", "(", ")", ",") or not w.text.startswith("-") for w in args
            )
        case "sed":
            return _sed(args)
        case "date":
            return _flags(args, PROGRAMS["date"]) and all(w.text.startswith(("+", "-")) for w in args[:1])
        case "jq":
            return not any("env" in w.text.casefold() or w.text.startswith(("-L", "--")) for w in args)
        case _:
            return _flags(args, PROGRAMS[name])


def _flags(args: tuple[Word, ...], flags: Flags | None) -> bool:
    if flags is None:
        return True
    operands = 0
    at = 0
    while at < len(args):
        word = args[at]
        text = word.text
        at += 1
        if word.glob and not re.match(r"[\w./]", text):
            return False  # a file named like an option would become one
        if text == "--":
            operands += len(args) - at
            break
        if text.startswith("--"):
            if text[2:].partition("=")[0] not in flags.long:
                return False
        elif text.startswith("-") and len(text) > 1:
            taken = _cluster(text[1:], flags)
            if taken is None:
                return False
            at += taken
        else:
            operands += 1
    return operands <= flags.operands


def _cluster(letters: str, flags: Flags) -> int | None:
    """How many further words the letters of one option word take; None where one is not harmless."""
    if flags.numbers and letters.isdigit():
        return 0
    for at, letter in enumerate(letters):
        if letter in flags.valued:
            return 0 if at + 1 < len(letters) or letter in flags.short else 1
        if letter not in flags.short:
            return None
    return 0


def _git(args: tuple[Word, ...]) -> bool:
    rest = args
    while rest and rest[0].text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs"):
        rest = rest[1:]
    if not rest or rest[0].text not in GIT:
        return len(args) == 1 and args[0].text == "--version"
    sub = rest[0].text
    operands = [w.text for w in rest[1:] if not w.text.startswith("-")]
    if (first := _GIT_FIRST.get(sub)) and operands[:1] != [first]:
        return sub == "reflog" and not operands and _flags(rest[1:], GIT[sub])
    return _flags(rest[1:], GIT[sub])


_SETTING_OPTIONS = frozenset(
    ["--global", "--local", "--system", "--worktree", "--show-origin", "--show-scope", "--name-only", "--null", "-z",
     "--bool", "--int", "--path"]
)  # fmt: skip


def reads_settings(texts: tuple[str, ...]) -> bool:
    """Return True if `git config` with these arguments prints settings and changes none."""
    at = texts.index("config")
    options = [text for text in texts[at + 1 :] if text.startswith("-")]
    operands = [text for text in texts[at + 1 :] if not text.startswith("-")]
    looks = ("--get", "--list", "-l")
    if any(text.startswith(looks) for text in options) or operands[:1] in (["get"], ["list"]):
        return True
    return len(operands) == 1 and "." in operands[0] and all(text in _SETTING_OPTIONS for text in options)


def _sed(args: tuple[Word, ...]) -> bool:
    scripts = [w.text for w in args if not w.text.startswith("-")][:1]
    quiet = any(w.text in ("-n", "--quiet", "--silent", "-nE", "-En") for w in args)
    return quiet and bool(scripts) and bool(_PRINT.fullmatch(scripts[0])) and _flags(args, PROGRAMS["sed"])


_PATH_TAIL = lazy(r"(?:\.\.|~|(?<!\.)/).*", re.DOTALL)


def candidates(text: str) -> Iterator[str]:
    """Yield the parts of a word that may be a path: itself, an attached value, what follows `=` or a colon."""
    yield text
    if "=" in text:
        yield text.partition("=")[2]
    if text.startswith("-"):
        yield text[2:]
        if found := _PATH_TAIL.search(text):
            yield found[0]
    for tail in {text.partition(":")[2], text.rpartition(":")[2]} if ":" in text else ():
        if not tail.startswith("//"):
            yield tail


# Programs that open nothing of what they are given, and those whose first operand is no path.
_NO_PATHS = frozenset(
    {"echo", "seq", "tr", "basename", "dirname", "numfmt", "true", "false", "whoami", "id", "uname", "nproc", "arch", "date", "which"}
)  # fmt: skip
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "fd", "fdfind", "jq", "sed"})
_PATTERN_OPTION = lazy(r"-(?!-).*[ef].*|--(?:regexp|file|expression).*", re.DOTALL)
# Options whose values are texts and never paths.
_TEXT_OPTION = lazy(
    r"--(?:format|pretty|date|grep|author|committer|since|after|until|before|regexp|replace|line-prefix|sort|key|field-separator"
    r"|color|diff-filter|word-diff|iso-8601|rfc-3339)="
)
_FOLLOWS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), lazy(r"-[^-]*R|--deref.*")),
    **dict.fromkeys(("rg", "fd", "fdfind"), lazy(r"-[^-]*L|--follow")),
    "find": lazy(r"-[LH]|-follow"),
    "tree": lazy(r"-[^-]*l"),
    "diff": lazy(r"-[^-]*r|--rec.*"),
}


def _pattern(name: str, args: tuple[Word, ...]) -> Word | None:
    """Return the argument that is a pattern or script rather than a path."""
    if name not in _PATTERN_FIRST or any(_PATTERN_OPTION.fullmatch(w.text) for w in args):
        return None
    return next((w for w in args if not w.text.startswith("-")), None)


def _follows_links(name: str, args: tuple[Word, ...]) -> bool:
    """Report whether the program follows symbolic links that it finds in folders."""
    found = _FOLLOWS.get(name)
    return found is not None and any(found.fullmatch(w.text) for w in args)


def _operand_is_harmless(word: Word, resolve: Resolve, *, path: bool) -> bool:
    """`path`: the word may name a file, so it has to lead to a place inside, whatever it looks like."""
    if _SUBSTITUTED.search(word.text) and "[" in word.text:
        return False
    path = path and not _TEXT_OPTION.match(word.text)
    for text in candidates(word.text):
        if holds_secrets(text) or text.startswith("~"):
            return False
        real = resolve(text) if text else ""
        if real is None and (path or text.startswith("/") or ".." in text.split("/")):
            return False
        if not word.glob and real and holds_secrets(real):
            return False
        if word.glob and _may_name_a_secret(text):
            return False
    return True


def _may_name_a_secret(pattern: str) -> bool:
    name = pattern.rsplit("/", 1)[-1]
    regex = re.escape(name).replace(r"\*", ".*").replace(r"\?", ".")
    regex = re.sub(r"\\\[[^]]*\]", ".", regex)
    return any(
        (sample[0] != "." or name.startswith(".")) and name != "*" and re.fullmatch(regex, sample)
        for sample in SECRET_SAMPLES
    )
