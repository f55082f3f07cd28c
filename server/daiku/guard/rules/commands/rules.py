"""The person's own rules on commands, the options that no rule lets through, and the need of the network."""

from __future__ import annotations

import re
import shlex

from daiku.guard.rules.commands.bash import SimpleCommand, Word
from daiku.guard.rules.commands.inlinecode import writes_or_runs
from daiku.guard.rules.commands.wrappers import list_words, list_words_by_name, program_name, runs_others
from daiku.texts.rules.patterns import lazy

PROGRAMS = list_words("network", "programs")
SUBCOMMANDS = list_words_by_name("network", "subcommands")
"""Of programs that need it for some of their work only: the sub-commands that do."""
VERSION_WORDS = frozenset({"--version", "-v", "-V", "version", "--client", "--short", "--help", "-h", "help"})
"""Arguments with which every program only prints about itself."""
LOCAL = list_words_by_name("network", "local subcommands")
"""Sub-commands that need no network, of programs that usually do."""
DOWNLOADS = list_words_by_name("network", "downloads")
"""Sub-commands that download from where the user's settings say and upload nothing of the project."""


CLIENTS = frozenset({"curl", "wget", "http", "https", "nc", "ncat", "netcat", "telnet", "ping", "ping6"})
_LOOPBACK = lazy(r"(?:[^@]*@)?(?:localhost|127(?:\.\d+){1,3}|0\.0\.0\.0|\[::1\]|::1)(?::\d*)?")
_AFTER_HOST = lazy(r"[/?#]")
_NO_HOST = lazy(r"[A-Z]+|\d+|[\w-]+:?==?.*")
"""A method, a port, or a field of HTTPie."""
_NO_PROXY = lazy(r"-[a-wyzA-JL-Z0-9]+-?|--[a-z-]+")
"""Options that name no host: neither a proxy nor a file of settings, and no value is attached."""
_WITH_VALUE = lazy(
    r"-[a-zA-Z]*[odHXFTuAbcwm]|--(?:output|data[a-z-]*|header|request|form|json|user|cookie|max-time|post-data|method)"
)
_PYTHON = re.compile(r"^(?:python|python3|python3\.\d+|py)$")
_COPIERS = frozenset({"rsync", "scp"})
_PLACE_OPTION = lazy(
    r"-[iIfC]|--(?:registry|index|default-index|extra-index|find-links|proxy|source|git|url|trusted|config|userconfig"
    r"|globalconfig|prefix|upload|exec|repo|path|script-shell|https?-)"
)
_SHORTHANDS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""Package managers for which `user/repo` is a repository on GitHub."""
_PACKAGE_OPTIONS = frozenset({"-y", "--yes", "-p", "--package"})


def named_program(words: tuple[Word, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the program and its arguments; `python -m pip` and `uv pip` are pip."""
    name, texts = program_name(words), tuple(w.text for w in words[1:])
    if _PYTHON.match(name) and texts[:1] == ("-m",) and len(texts) > 1:
        return texts[1], texts[2:]
    return ("pip", texts[1:]) if name == "uv" and texts[:1] == ("pip",) else (name, texts)


def wants_network(words: tuple[Word, ...]) -> bool:
    """Return True if the program is known to need the network."""
    name, texts = named_program(words)
    operands = tuple(text for text in texts if not text.startswith("-"))
    if _is_local(name, texts, operands) or (name in CLIENTS and _stays_on_loopback(texts)):
        return False
    if name == "npx":
        return _downloads_package(texts)
    if name in _COPIERS:
        return any(":" in text for text in operands)
    return name in PROGRAMS or any(text in SUBCOMMANDS.get(name, ()) for text in operands[:2])


def goes_where_configured(words: tuple[Word, ...]) -> bool:
    """Return True for a package manager or `git fetch` without a URL.

    The user's settings then name the server, and nothing is uploaded.
    """
    name, texts = named_program(words)
    second = next((text for text in texts if not text.startswith("-")), "")
    if second not in DOWNLOADS.get(name, ()) or words[0].text != program_name(words):
        return False
    if name in _SHORTHANDS and any("/" in text and not text.startswith(("@", "./")) for text in texts):
        return False
    plain = all(word.plain and not word.glob for word in words)
    return plain and not any(
        ":" in text or text.startswith(("/", "~", "..", "-c")) or _PLACE_OPTION.match(text) for text in texts
    )


def _downloads_package(texts: tuple[str, ...]) -> bool:
    """Return True if npx is told to download: without that it runs what is installed, or fails in the sandbox."""
    first = next((text for text in texts if not text.startswith("-")), "")
    return first.startswith("create-") or "@" in first[1:] or any(text in _PACKAGE_OPTIONS for text in texts)


def _is_local(name: str, texts: tuple[str, ...], operands: tuple[str, ...]) -> bool:
    if texts and all(text in VERSION_WORDS for text in texts):
        return True
    if name == "git" and operands[:1] == ("archive",):
        return not any(text.startswith("--r") for text in texts)  # --remote, which git lets users shorten
    if name == "git" and operands[:1] == ("clone",):
        return "".join(operands[1:2]).startswith((".", "/")) and not any(":" in t or "//" in t for t in texts)
    locals_ = (tuple(local.split()) for local in LOCAL.get(name, ()))
    return any(operands[: len(local)] == local for local in locals_)


def _stays_on_loopback(texts: tuple[str, ...]) -> bool:
    """Return True if every operand names this machine; a sandboxed command then needs no network."""
    operands = [
        text
        for before, text in zip(("", *texts), texts, strict=False)
        if not text.startswith("-") and not _WITH_VALUE.fullmatch(before)
    ]
    local = [text for text in operands if _is_loopback(text)]
    options = [text for text in texts if text.startswith("-")]
    return (
        bool(local)
        and all(text in local or _NO_HOST.fullmatch(text) for text in operands)
        and all(_NO_PROXY.fullmatch(text) for text in options)
    )


def _is_loopback(text: str) -> bool:
    host = _AFTER_HOST.split(text.removeprefix("http://").removeprefix("https://"), 1)[0]
    return _LOOPBACK.fullmatch(host) is not None


# Options that run a program or write a file, also where a command is allowed by its first words. Long
# names count abbreviated, letters inside clusters.
RISKY = list_words_by_name("rules", "risky options")
_FIND = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)
# Builtins that calculate with their words, and run what stands in a subscript.
_CALCULATE = list_words("rules", "calculating builtins")
_GIT_VALUED = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)


def rule_words(rule: str) -> tuple[str, ...]:
    """Return the words of one rule of the settings."""
    try:
        return tuple(shlex.split(rule))
    except ValueError:
        return tuple(rule.split())


def has_risky_option(words: tuple[Word, ...], spared: tuple[str, ...] = ()) -> bool:
    """Return True where an option makes the program run another or write a file; `spared` were named in a rule."""
    name = program_name(words)
    args = [w.text for w in words[1:] if w.text not in spared]
    if (
        writes_or_runs(words)
        or (name == "git" and _git_acts(words, spared))
        or (name in ("tar", "bsdtar") and _tar_writes(args))
    ):
        return True
    if name in ("find", "fd", "fdfind") and any(a in _FIND for a in args):
        return True
    if name in _CALCULATE and any("[" in a or re.search(r"[$`]", a) for a in args):
        return True
    risky = RISKY.get(name, ())
    for arg in args:
        if arg.startswith("--"):
            option, _, value = arg[2:].partition("=")
            if (option and any(risk.startswith(f"--{option}") for risk in risky)) or value.startswith(
                _TRANSPORTS
            ):
                return True
        elif (
            (arg.startswith("-") and any(f"-{c}" in risky for c in arg[1:]))
            or arg.startswith(_TRANSPORTS)
            or "::" in arg.partition("/")[0]
        ):
            return True
    return False


_TRANSPORTS = ("ext::", "fd::")
"""Addresses of git that are programs or open files."""
# What these do to files and servers is their use; whoever allows them by name means it.
_GIT_OWN = list_words("rules", "own subcommands of git")
_GIT_WRITES = list_words_by_name("rules", "writing arguments of git")
"""Arguments by which a sub-command writes a file that it is told, or starts a program."""


def _git_acts(words: tuple[Word, ...], spared: tuple[str, ...]) -> bool:
    """Return True for an unknown sub-command (an alias runs anything) and for arguments that write or run something."""
    sub, rest = find_git_subcommand(words)
    if not sub:
        return False
    if sub not in _GIT_OWN:
        return sub not in spared
    if "-c" not in spared and any(word.text == "-c" for word in words[1 : -1 - len(rest)]):
        return True
    marks = _GIT_WRITES.get(sub, ())
    return any(
        given not in spared and (given == mark or (mark[0] == "-" and given.startswith(mark)))
        for mark in marks
        for given in rest
    )


def find_git_subcommand(words: tuple[Word, ...]) -> tuple[str, list[str]]:
    """Return the sub-command of git, empty where there is none, and its arguments."""
    args = [w.text for w in words[1:]]
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in _GIT_VALUED else 1
    return (args[at], args[at + 1 :]) if at < len(args) else ("", [])


_GIT_SILENT = list_words("rules", "silent subcommands of git")
"""Sub-commands of git that print no text of a file, and put none at another path, unless an argument says so."""
_SHOWS_TEXT = lazy(r"-[a-zA-Z]*[vpie].*|--(?:v|e|inter|p(?!orcelain|rune|rogress|oints)).*|.*subtree.*")
_LOG_WITHOUT_TEXT = lazy(
    r"--|-n?\d*|--(?:oneline|graph|all|decorate|reverse|no-color|stat|shortstat|numstat|name-only|name-status|(?:max-count|format|pretty)=.*)"
)


_OWN_COMMIT = lazy(r"(?:HEAD|@)(?:[~^]\d*)*")
_OTHER_SOURCE = lazy(r"-[a-zA-Z]*s.*|--so(?!urce=(?:HEAD|@)(?:[~^]\d*)*$).*")


def git_prints_files(words: tuple[Word, ...]) -> bool:
    """Return True if the command is git and may print the text of a file, or copy it to where nothing closes it."""
    if program_name(words) != "git":
        return False
    sub, rest = find_git_subcommand(words)
    options = [text for text in rest if text.startswith("-")]
    operands = [text for text in rest if not text.startswith("-")]
    match sub:
        case "log":
            return not all(map(_LOG_WITHOUT_TEXT.fullmatch, options))
        case "fetch" | "pull" | "push":
            return has_risky_option(words) or any(text.startswith(("/", ".", "~")) for text in operands)
        case "checkout" | "reset" | "restore" if not _restores_in_place(sub, rest):
            return True
        case "stash" if operands[:1] == ["show"]:
            return True
        case "config" if any("worktree" in text.lower() for text in rest):
            return True
        case _:
            shows = any(map(_SHOWS_TEXT.fullmatch, rest))
            return sub not in _GIT_SILENT or shows or runs_others(words) or has_risky_option(words)


def _restores_in_place(sub: str, rest: list[str]) -> bool:
    """Return True unless the arguments may name a folder of a commit, whose files git would put at other paths."""
    if sub == "restore":
        return not any(map(_OTHER_SOURCE.fullmatch, rest))
    paths = "--" in rest
    operands = [text for text in rest[: rest.index("--") if paths else None] if not text.startswith("-")]
    if not paths and len(operands) <= 1 + ("-b" in rest):
        return True
    return all(map(_OWN_COMMIT.fullmatch, operands if paths else operands[:1]))


_GIT_PLAIN_SETTINGS = lazy(
    r"user\.(?:name|email)|(?:color|advice|pull|push|branch)\.[\w.-]+|init\.defaultbranch|core\.(?:autocrlf|quotepath|filemode|ignorecase)",
    re.IGNORECASE,
)


def git_runs_settings(words: tuple[Word, ...]) -> bool:
    """Return True if git would run an alias of the repository, or keep a setting that may name a program."""
    if program_name(words) != "git":
        return False
    sub, rest = find_git_subcommand(words)
    if sub != "config":
        return bool(sub) and sub not in _GIT_OWN and sub != "lfs"
    operands = [text for text in rest if not text.startswith("-") and text not in ("set", "get", "list")]
    return len(operands) > 1 and not _GIT_PLAIN_SETTINGS.fullmatch(operands[0])


def _tar_writes(args: list[str]) -> bool:
    """Return True unless the archive is only listed."""
    first = args[0] if args else ""
    letters = first.lstrip("-") if not first.startswith("--") else ""
    listing = "t" in letters or any("--list".startswith(a) and len(a) > 3 for a in args)
    return not listing or any(letter in letters for letter in "cxruA")


def allowed_by(simple: SimpleCommand, rules: tuple[str, ...]) -> bool:
    """Return True if a rule of the user allows the complete command.

    It begins with the rule's words, and runs no other program that the rule does not name.
    """
    texts = simple.texts
    for rule in rules:
        tokens = rule_words(rule)
        if not tokens or texts[: len(tokens)] != tokens or simple.words[0].text != tokens[0]:
            continue
        if any(w.glob and not re.match(r"[\w./]", w.text) for w in simple.words):
            continue
        if _goes_elsewhere(simple, tokens):
            continue
        wraps = runs_others(simple.words) and not _names_the_program(tokens)
        if not wraps and not has_risky_option(simple.words, tokens):
            return True
    return False


_ADDRESS = re.compile(r"://|^[\w.-]+@[\w.-]+:|^[\w.-]+:[\w./~-]+$")
_DESTINATION = re.compile(
    r"^-{1,2}[\w-]*(?:registr|index|url|proxy|host|remote|server|repo|source|config|endpoint|find-links|mirror|channel|context|cluster"
    r"|profile|region|project|account|api|upstream|origin)[\w-]*(?:=|$)|^-[ifxKHhusx][^-]*[:/.]",
    re.IGNORECASE,
)


def _goes_elsewhere(simple: SimpleCommand, tokens: tuple[str, ...]) -> bool:
    """Return True if what follows the rule's words may name another network address than the rule does."""
    if not wants_network(simple.words):
        return any("://" in text for text in simple.texts[len(tokens) :])
    more = simple.texts[len(tokens) :]
    if program_name(simple.words) in CLIENTS:
        return bool(more)
    return any(_ADDRESS.search(word) or _DESTINATION.search(word) for word in more)


def _names_the_program(tokens: tuple[str, ...]) -> bool:
    """Return True where a rule such as `timeout 60 npm test` goes on to the program that is wrapped."""
    plain = [t for t in tokens[1:] if not t.startswith("-") and not re.match(r"^[\d.]+[smhd]?$|^\w+=", t)]
    return bool(plain)


def denied_by(simple: SimpleCommand, rules: tuple[str, ...]) -> str:
    """Return the rule that denies the command, options abbreviated or in between all the same; else empty."""
    for rule in rules:
        tokens = rule_words(rule)
        if tokens and simple.words and _denies(tokens, simple):
            return rule
    return ""


def _denies(tokens: tuple[str, ...], simple: SimpleCommand) -> bool:
    texts = simple.texts
    first = program_name((Word(tokens[0]),))
    if program_name(simple.words) != first and texts[0] != tokens[0]:
        return False
    args = simple.words[1:]
    options = [t for t in tokens[1:] if t.startswith("-")]
    if not all(any(_open(a) or is_same_option(o, a.text) for a in args) for o in options):
        return False
    return _in_order([t for t in tokens[1:] if not t.startswith("-")], args, git=first == "git")


def _open(word: Word) -> bool:
    """Return True where the shell may make any word of it."""
    return not word.plain or word.glob


def is_same_option(wanted: str, given: str) -> bool:
    """Return True if the word `given` is the option `wanted`, also abbreviated, with a value, or among other letters."""
    if wanted == given or given.startswith(wanted + "="):
        return True
    if wanted.startswith("--"):
        option = given.partition("=")[0]
        return given.startswith("--") and len(option) > 3 and wanted.startswith(option)  # "--f" could be many
    is_letter = len(wanted) == 2 and wanted[0] == given[:1] == "-"
    return is_letter and given[1:2] != "-" and wanted[1] in given[1:]


def _in_order(wanted: list[str], args: tuple[Word, ...], *, git: bool) -> bool:
    """Return True if `wanted` are, or may be, the first words of `args` without options and their values."""
    at = 0
    skippable = False
    for word in args:
        arg = word.text
        if at == len(wanted) or _open(word):
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
