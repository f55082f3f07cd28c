"""Find the command that a wrapper program such as `env` or `timeout` runs, after the wrapper's options."""

from __future__ import annotations

import posixpath
import re

from daiku.core.commands.bash import SimpleCommand
from daiku.core.commands.words import Word
from daiku.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The arguments of a wrapper: options that take the next word, and how many words precede the program."""

    valued: frozenset[str] = frozenset()
    operands: int = 0


def _w(valued: str = "", operands: int = 0) -> Wrapper:
    return Wrapper(frozenset(valued.split()), operands)


WRAPPERS: dict[str, Wrapper] = {
    "env": _w("-u --unset -C --chdir -a --argv0"),
    "sudo": _w("-u -g -h -p -C -r -t -U -D -R -T --user --group --host --prompt --chdir --chroot"),
    "doas": _w("-u -C"),
    "run0": _w("-u --user -D --chdir"),
    "pkexec": _w("--user"),
    "nice": _w("-n --adjustment"),
    "ionice": _w("-c -n -p --class --classdata"),
    "chrt": _w("-T -P -D", 1),
    "taskset": _w("", 1),
    "timeout": _w("-k -s --kill-after --signal", 1),
    "gtimeout": _w("-k -s --kill-after --signal", 1),
    "nohup": _w(),
    "setsid": _w(),
    "stdbuf": _w("-i -o -e --input --output --error"),
    "unbuffer": _w(),
    "xargs": _w(
        "-I -n -P -L -s -d -E -a --max-args --max-procs --max-lines --delimiter --arg-file --replace --eof"
    ),
    "parallel": _w("-j --jobs -I -a --arg-file -d --delimiter"),
    "command": _w(),
    "builtin": _w(),
    "exec": _w("-a"),
    "coproc": _w(),
    "time": _w("-f -o --format --output"),
    "busybox": _w(),
    "toybox": _w(),
    "watch": _w("-n -q --interval --equexit"),
    "flock": _w("-w -E --timeout --conflict-exit-code", 1),
    "chroot": _w("", 1),
    "unshare": _w("-S -G -R -w --root --wd"),
    "nsenter": _w("-t -S -G --target"),
    "setpriv": _w(),
    "setarch": _w("", 1),
    "linux64": _w(),
    "prlimit": _w(),
    "strace": _w("-o -e -p -s -u -E"),
    "ltrace": _w("-o -e -p -s -u"),
    "catchsegv": _w(),
    "fakeroot": _w(),
    "proot": _w("-r -b -w"),
    "firejail": _w(),
    "bwrap": _w(),
    "systemd-run": _w("-u -p --unit --property"),
    "dbus-run-session": _w(),
    "xvfb-run": _w("-n -s -e -f --server-num --server-args"),
    "entr": _w(),
    "chronic": _w(),
    "caffeinate": _w("-t -w"),
    "script": _w("-c --command"),
    "su": _w("-s -g -G --shell --group"),
    "runuser": _w("-u -g -G -s --user --group --shell"),
    "gosu": _w("", 1),
    "su-exec": _w("", 1),
    "npx": _w("-p --package -w"),
    "bunx": _w(),
    "pnpx": _w(),
    "dotenv": _w("-e -f"),
    "direnv": _w("", 2),
    "mise": _w("", 1),
    "rlwrap": _w(),
    "ld.so": _w(),
    "torsocks": _w(),
    "proxychains": _w("-f"),
    "proxychains4": _w("-f"),
    "ccache": _w(),
    "hyperfine": _w("-w -r -m -M -p -c"),
    "perf": _w("", 1),
    "valgrind": _w(),
    "gdb": _w("-ex -x"),
    "then": _w(),
    "do": _w(),
    "else": _w(),
    "!": _w(),
    "nocorrect": _w(),
    "noglob": _w(),
}
# Two words that run the rest.
PAIRS = {
    ("npm", "exec"), ("npm", "x"), ("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "exec"), ("yarn", "dlx"), ("uv", "run"),
    ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("bundle", "exec"), ("git", "bisect"), ("rye", "run"),
    ("conda", "run"), ("go", "tool"), ("rustup", "run"), ("asdf", "exec"), ("nix", "run"), ("nix-shell", "--run"),
}  # fmt: skip
SHELLS = frozenset(
    {
        "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "tcsh", "csh", "rbash", "pwsh", "powershell", "cmd", "elvish",
        "nu", "xonsh", "yash", "oksh",
    }
)  # fmt: skip
# Their arguments together, or one of them, are a command line.
TEXT_PROGRAMS = frozenset(
    {"eval", "watch", "parallel", "ssh", "trap", "hyperfine", "at", "batch", "entr", "concurrently"}
)


_TEXT_OPTIONS = re.compile(
    r"^(?:-c|--command|--exec|-x|-S|--split-string|--to-command|--checkpoint-action|--use-compress-program|--run|--rsh"
    r"|--tree-filter|--index-filter|--msg-filter|--env-filter|--commit-filter|--upload-pack|--receive-pack|--pre|-e)"
    r"(?:=(?P<value>.*))?$",
    re.DOTALL,
)
_TEXT_OPTION_PROGRAMS = frozenset(
    {
        "su",
        "runuser",
        "script",
        "flock",
        "git",
        "env",
        "tar",
        "rsync",
        "nix-shell",
        "unshare",
        "rg",
        "time",
        "gdb",
    }
)
_ASSIGNMENT = re.compile(r"^\w+\+?=")
_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


def program_name(words: tuple[Word, ...]) -> str:
    """The name of the program without its folder, lower-cased and without `.exe`."""
    if not words:
        return ""
    name = posixpath.basename(words[0].text.replace("\\", "/")).casefold()
    return name.removesuffix(".exe")


def runs_others(words: tuple[Word, ...]) -> bool:
    """True where the program itself is a way to run other programs."""
    name = program_name(words)
    second = words[1].text if len(words) > 1 else ""
    return (
        name in WRAPPERS
        or name in SHELLS
        or name in TEXT_PROGRAMS
        or (name, second) in PAIRS
        or (name in ("find", "fd", "fdfind") and any(w.text in _EXEC for w in words))
        or bool(_option_texts(name, words))
    )


def inner_commands(simple: SimpleCommand) -> tuple[tuple[SimpleCommand, ...], tuple[str, ...]]:
    """What `simple` would run: commands that its words may be, and texts that a shell would read."""
    words = simple.words
    name = program_name(words)
    commands: list[tuple[Word, ...]] = []
    texts: list[str] = list(_option_texts(name, words))
    if words and not words[0].plain:
        commands.append(words[1:])
    if (wrapper := WRAPPERS.get(name)) is not None:
        commands.extend(_after_options(words[1:], wrapper))
    second = words[1].text if len(words) > 1 else ""
    if (name, second) in PAIRS:
        commands.extend(_suffixes(words[2:]))
    if name in ("find", "fd", "fdfind"):
        commands.extend(words[i + 1 :] for i, w in enumerate(words) if w.text in _EXEC)
    if name in SHELLS:
        texts.extend(_shell_texts(words[1:]))
    if name in TEXT_PROGRAMS:
        texts.append(" ".join(w.text for w in words[1:] if not w.text.startswith("-")))
        texts.extend(w.text for w in words[1:] if " " in w.text)
        if name == "ssh":
            commands.extend(_suffixes(words[1:]))
    return tuple(SimpleCommand(c) for c in commands if c), tuple(t for t in texts if t)


def _suffixes(words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    return [words[i:] for i in range(min(len(words), 40))]


def _after_options(words: tuple[Word, ...], wrapper: Wrapper) -> list[tuple[Word, ...]]:
    """The words from the program on. Where an option is unknown, or a word computed, every place
    from there on may be it."""
    left = wrapper.operands
    at = 0
    while at < len(words):
        word = words[at]
        if not word.plain:
            return _suffixes(words[at:])
        if word.text == "--":
            at += 1
            break
        if word.text in wrapper.valued:
            at += 2
        elif word.text.startswith("-") and len(word.text) > 1:
            name = word.text.partition("=")[0]
            if wrapper.valued and not ("=" in word.text or any(name.startswith(v) for v in wrapper.valued)):
                return _suffixes(words[at + 1 :])
            at += 1
        elif _ASSIGNMENT.match(word.text) or word.text == "-":
            at += 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    return [words[at:]] if at < len(words) else []


def _shell_texts(words: tuple[Word, ...]) -> list[str]:
    texts: list[str] = []
    commanded = False
    for word in words:
        option = word.text.startswith(("-", "/c", "/C")) and len(word.text) > 1
        if option and not word.text.startswith("--"):
            commanded = commanded or "c" in word.text.casefold()
        elif option:
            commanded = commanded or word.text.startswith("--command")
            texts.extend(word.text.partition("=")[2:])
        elif commanded:
            texts.append(word.text)
    return texts


def _option_texts(name: str, words: tuple[Word, ...]) -> list[str]:
    """Command lines that stand in options, such as those of `git -c alias.x=!rm`."""
    if name not in _TEXT_OPTION_PROGRAMS:
        return []
    texts: list[str] = []
    for at, word in enumerate(words[1:], 1):
        found = _TEXT_OPTIONS.match(word.text)
        if found is None:
            if name == "env" and word.text.startswith("-") and "S" in word.text[1:]:
                texts.append(word.text.partition("S")[2] or " ".join(w.text for w in words[at + 1 :]))
            continue
        value = found["value"] or (words[at + 1].text if at + 1 < len(words) else "")
        if name == "git" and word.text == "-c":
            value = value.partition("=")[2]
            if not value:
                continue  # no setting: `git switch -c branch`
        value = value.removeprefix("exec=").lstrip("!")
        if name == "env":
            value = " ".join([value, *(w.text for w in words[at + 2 :])])
        texts.append(value)
    if name == "git" and "foreach" in (w.text for w in words):
        texts.extend(w.text for w in words[1:])
    return texts
