"""The person's own rules on commands: what a rule matches, and which options no rule lets through."""

from __future__ import annotations

import re
import shlex

from daiku.core.bash import Simple, Word
from daiku.core.wrappers import program, runs_others

# Options that run a program or write a file, also where a command is allowed by its first words. Long
# names count abbreviated, letters inside clusters.
RISKY: dict[str, tuple[str, frozenset[str]]] = {
    "git": (
        "O",
        frozenset(
            [
                "upload-pack",
                "receive-pack",
                "exec",
                "output",
                "output-directory",
                "open-files-in-pager",
                "ext-diff",
                "textconv",
                "template",
                "config",
                "config-env",
                "exec-path",
                "extcmd",
                "tool",
                "ssh-command",
                "upload-archive",
                "git-dir",
                "work-tree",
                "separate-git-dir",
            ]
        ),
    ),
    "rg": ("", frozenset({"pre", "hostname-bin", "search-zip"})),
    "sort": ("oT", frozenset({"output", "compress-program"})),
    "tar": (
        "IF",
        frozenset({"to-command", "checkpoint-action", "use-compress-program", "info-script", "rsh-command"}),
    ),
    "find": ("", frozenset()),
    "man": ("PH", frozenset({"pager", "html"})),
    "rsync": ("e", frozenset({"rsh", "rsync-path"})),
    "ssh": ("oF", frozenset()),
    "scp": ("oSF", frozenset()),
    "tree": ("o", frozenset({"output"})),
    "zip": ("T", frozenset({"unzip-command"})),
    "curl": ("oOKTC", frozenset({"output", "remote-name", "config", "upload-file", "output-dir"})),
    "wget": (
        "OPi",
        frozenset({"output-document", "use-askpass", "execute", "directory-prefix", "post-file"}),
    ),
    "sed": ("iesf", frozenset({"in-place", "expression", "file"})),
    "xxd": ("r", frozenset({"revert"})),
    "date": ("sf", frozenset({"set", "file"})),
    "less": ("oOkPT", frozenset({"log-file"})),
    "printf": ("v", frozenset()),
    "test": ("vR", frozenset()),
    "[": ("vR", frozenset()),
    "read": ("a", frozenset()),
    "fd": ("xX", frozenset({"exec", "exec-batch"})),
    "vim": ("cSs", frozenset({"cmd"})),
    "gdb": ("x", frozenset({"ex", "command", "eval-command"})),
    "pip": ("", frozenset()),
}
_FIND = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)
# Builtins that calculate with their words, and run what stands in a subscript.
_CALCULATE = frozenset(
    {"test", "[", "[[", "printf", "let", "declare", "typeset", "local", "export", "readonly", "read", "unset", "mapfile",
     "readarray", "wait", "getopts", "((", "shift", "return", "exit", "ulimit"}
)  # fmt: skip
_GIT_VALUED = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)


def split(rule: str) -> tuple[str, ...]:
    """The words of one rule of the settings."""
    try:
        return tuple(shlex.split(rule))
    except ValueError:
        return tuple(rule.split())


def risky(words: tuple[Word, ...], spared: tuple[str, ...] = ()) -> bool:
    """True where an option makes the program run another or write a file; `spared` were named in a rule."""
    name = program(words)
    args = [w.text for w in words[1:] if w.text not in spared]
    if name in ("find", "fd", "fdfind") and any(a in _FIND for a in args):
        return True
    if name in _CALCULATE and any("[" in a or re.search(r"[$`]", a) for a in args):
        return True
    letters, names = RISKY.get(name, ("", frozenset[str]()))
    for arg in args:
        if arg.startswith("--"):
            option = arg[2:].partition("=")[0]
            if option and any(risk.startswith(option) for risk in names):
                return True
        elif (
            (arg.startswith("-") and (any(c in letters for c in arg[1:]) or (name == "git" and arg == "-c")))
            or arg.startswith(("ext::", "fd::"))
            or "::" in arg.partition("/")[0]
        ):
            return True
    return False


def allowed_by(simple: Simple, rules: tuple[str, ...]) -> bool:
    """True where one of the person's rules allows the whole command: it begins with the rule's words, and
    nothing in it runs another program that the rule does not name."""
    texts = simple.texts
    for rule in rules:
        tokens = split(rule)
        if not tokens or texts[: len(tokens)] != tokens or simple.words[0].text != tokens[0]:
            continue
        if any(w.glob and not re.match(r"[\w./]", w.text) for w in simple.words):
            continue
        wraps = runs_others(simple.words) and not _names_the_program(tokens)
        if not wraps and not risky(simple.words, tokens):
            return True
    return False


def _names_the_program(tokens: tuple[str, ...]) -> bool:
    """True where a rule such as `timeout 60 npm test` goes on to the program that is wrapped."""
    plain = [t for t in tokens[1:] if not t.startswith("-") and not re.match(r"^[\d.]+[smhd]?$|^\w+=", t)]
    return bool(plain)


def denied_by(simple: Simple, rules: tuple[str, ...]) -> str:
    """The rule that denies the command, options abbreviated or in between all the same; else empty."""
    for rule in rules:
        tokens = split(rule)
        if tokens and simple.words and _denies(tokens, simple):
            return rule
    return ""


def _denies(tokens: tuple[str, ...], simple: Simple) -> bool:
    texts = simple.texts
    first = program((Word(tokens[0]),))
    if program(simple.words) != first and texts[0] != tokens[0]:
        return False
    args = list(texts[1:])
    options = [t for t in tokens[1:] if t.startswith("-")]
    if not all(any(_same_option(o, a) for a in args) for o in options):
        return False
    return _in_order([t for t in tokens[1:] if not t.startswith("-")], args, git=first == "git")


def _same_option(wanted: str, given: str) -> bool:
    if wanted == given or given.startswith(wanted + "="):
        return True
    if wanted.startswith("--"):
        option = given.partition("=")[0]
        return given.startswith("--") and len(option) > 3 and wanted.startswith(option)  # "--f" could be many
    return (
        len(wanted) == 2  # one letter
        and given.startswith("-")
        and not given.startswith("--")
        and wanted[1] in given[1:]
    )


def _in_order(wanted: list[str], args: list[str], *, git: bool) -> bool:
    """True where `wanted` are the first words of `args`, options and what may be their values left out."""
    at = 0
    skippable = False
    for arg in args:
        if at == len(wanted):
            return True
        if arg.startswith("-"):
            skippable = "=" not in arg and (not git or arg in _GIT_VALUED)
        elif arg == wanted[at]:
            at += 1
            skippable = False
        elif skippable:
            skippable = False
        else:
            return False
    return at == len(wanted)
