"""Code that stands in a command line for another program than the shell: awk, sed, perl, python, find, make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from daiku.guard.rules.commands.bash import Word
from daiku.guard.rules.commands.wrappers import list_words_by_name, program_name
from daiku.texts.rules.patterns import lazy

_AWK = frozenset(["awk", "gawk", "mawk", "nawk", "original-awk", "busybox-awk", "goawk"])
_SED = frozenset(["sed", "gsed", "ssed"])
_CODE_OPTIONS = list_words_by_name("inline code", "options")
_ALWAYS_STARTS = frozenset(
    ["make", "gmake", "expect", "tmux", "screen", "vim", "vi", "nvim", "ex", "emacs", "m4"]
)
"""Programs whose code in a command line is there to start others, in more ways than could be listed."""
_READS_COMMANDS = frozenset(["at", "batch", "crontab", "ed", "ex", "m4", "newgrp"])
"""Programs that carry out, or keep for later, whatever commands stand in their input."""
_READS_BESIDES_FILES = frozenset(["psql", "sqlite3", "gdb", "lldb"])
_TAKES_CODE = frozenset(["timeit", "code", "asyncio", "pdb", "IPython", "ptpython"])
"""Modules of Python that run code from their arguments or their input."""
_PYTHON = lazy(r"^(?:python|pypy)[\d.]*$|^py$|^ipython3?$")
_STARTS = lazy(
    r"""system|exec|popen|spawn|fork|subprocess|child_process|`|\bqx\b|%x|\beval\b|getattr|globals|vars\(|__\w+__|importlib|runpy|ctypes
      |\bpty\b|compile|\bFunction\b|require|syscall|passthru|open3|\bIPC\b|\bload\w*\b|dlopen|cffi|\bsend\b|\|\s*["']|["']\s*\||getline
      |\bshell\b|!|\brun\b|new-session|new-window|split-window|respawn|do\s+shell|\bos\b|commands|multiprocessing|Deno|Bun|constructor
      |&\s*\{?\$|\$\w+\s*\(|\bmethod\b|send\b|binding|\bprogram\b""",
    re.VERBOSE | re.IGNORECASE,
)
_REMOVES = lazy(
    r"rmtree|remove_tree|rm_rf|rm_r\b|rimraf|rmSync|rmdirSync|removeSync|removedirs|emptyDir|recursive|remove_dir_all|RemoveAll|unlinkSync"
    r"|\brm\s+-\w*[rRf]|deltree|\bunlink\b|\brmdir\b|-delete\b",
    re.IGNORECASE,
)
_SED_ADDRESS = r"(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:~\d+)?(?:,(?:\+?\d+|\$|~\d+|/(?:[^/\\\n]|\\.)*/I?))?[ \t]*!?[ \t]*)?"
_SED_PLAIN = lazy(
    rf"[ \t\n;]*{_SED_ADDRESS}(?:[pdqQnNDPhHgGxlF=]|s(?P<d>[/|#,:@!%_;~+])(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gpiIM\d]*"
    r"|y(?P<e>[/|#,:@!])(?:(?!(?P=e))[^\\\n]|\\.)*(?P=e)(?:(?!(?P=e))[^\\\n]|\\.)*(?P=e))?[ \t]*(?=[;\n]|\Z)"
)
"""One command of sed that neither runs a program nor writes a file."""
_AWK_ACTS = lazy(r"system|\||>|getline|@|close|fflush|ENVIRON|\bARGV\b|printf?\s*\(?.*>")
_AWK_STARTS = lazy(r"system|\||getline|@")


def code_texts(words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the code for the program itself that stands among `words`."""
    name = program_name(words)
    if name in _AWK:
        yield from (w for w in words[1:] if not w.text.startswith("-"))
        yield from (w for w in words[1:] if w.text.startswith(("-e", "--source")))
    elif name in _SED:
        yield from _sed_scripts(words)
    elif _PYTHON.match(name):
        yield from _after(words, ("-c",))
    elif name in _CODE_OPTIONS:
        yield from _after(words, _CODE_OPTIONS[name])


def starts_unknown(words: tuple[Word, ...]) -> bool:
    """Return True if code in the command line may start a program that cannot be determined beforehand."""
    name = program_name(words)
    for word in code_texts(words):
        if not word.plain:
            return True
        if name in _ALWAYS_STARTS:
            found = True
        elif name in _AWK:
            found = bool(_AWK_STARTS.search(word.text))
        elif name in _SED:
            found = not _sed_is_plain(word.text)
        else:
            found = bool(_STARTS.search(word.text))
        if found:
            return True
    if _PYTHON.match(name):
        return any(a.text.endswith("m") and b.text in _TAKES_CODE for a, b in pairwise(words[1:]))
    return name in _AWK and any(w.text.startswith(("-f", "--file", "-l", "-i", "-E")) for w in words[1:])


def stdin_may_start_unknown(words: tuple[Word, ...], *, shown: bool, starts: bool) -> bool:
    """Return True if code on stdin may start a program that cannot be determined beforehand.

    `shown`: there is a text on stdin. `starts`: one of them `starts_program`.
    """
    return shown if program_name(words) in _READS_COMMANDS else starts and _reads_code(words)


def starts_program(code: str) -> bool:
    """Return True if `code` of any language may start a program."""
    return _STARTS.search(code) is not None


def reads_code_from_stdin(words: tuple[Word, ...]) -> bool:
    """Return True if the program reads its code from stdin only."""
    return _reads_code(words) and all(word.text == "-" for word in words[1:])


def interprets_code(words: tuple[Word, ...]) -> bool:
    """Return True if the program runs code of another language than the shell's."""
    name = program_name(words)
    return name in _CODE_OPTIONS or _PYTHON.match(name) is not None


def _reads_code(words: tuple[Word, ...]) -> bool:
    name = program_name(words)
    if not interprets_code(words) or name in _ALWAYS_STARTS:
        return False
    takes_files = name not in _READS_BESIDES_FILES
    return not (takes_files and any(w.text != "-" and not w.text.startswith("-") for w in words[1:]))


def removes_folders(words: tuple[Word, ...]) -> bool:
    """Return True if code in the command line removes folders, or runs a command that does."""
    return any(_REMOVES.search(word.text) for word in code_texts(words))


def writes_or_runs(words: tuple[Word, ...]) -> bool:
    """Return True if a sed or awk script in the command line may run a program or write a file."""
    name = program_name(words)
    if name in _SED:
        scripts = list(_sed_scripts(words))
        return any(not word.plain or not _sed_is_plain(word.text) for word in scripts) or any(
            w.text.startswith(("-i", "--in-place", "-f", "--file")) for w in words[1:]
        )
    if name in _AWK:
        if any(
            w.text.startswith(("-f", "--file", "-l", "--load", "-i", "--include", "-E", "--exec"))
            for w in words[1:]
        ):
            return True
        return any(not word.plain or _AWK_ACTS.search(word.text) for word in code_texts(words))
    return False


def _sed_is_plain(script: str) -> bool:
    """Return True where every command of the script is one that is known to be harmless."""
    at = 0
    while at < len(script):
        found = _SED_PLAIN.match(script, at)
        if found is None or (found.end() == at and script[at] not in ";\n"):
            return False
        at = max(found.end(), at + 1)
    return True


def _sed_scripts(words: tuple[Word, ...]) -> Iterator[Word]:
    given = list(_after(words, ("-e", "--expression", "-ne", "-Ee", "-re", "-nEe", "-nre")))
    yield from given
    if not given:
        yield from [w for w in words[1:] if not w.text.startswith("-")][:1]


def _after(words: tuple[Word, ...], options: tuple[str, ...]) -> Iterator[Word]:
    """Yield what follows one of `options`, as the next word or in the same; without options every word."""
    if not options:
        yield from words[1:]
        return
    for at, word in enumerate(words[1:], 1):
        for option in options:
            if word.text == option or (
                _cluster(word.text) and _cluster(option) and word.text.endswith(option[1:])
            ):
                yield from words[at + 1 : at + 2]
            elif word.text.startswith(option) and (len(option) > 2 or not word.text.startswith("--")):
                yield Word(word.text[len(option) :].lstrip("="), word.plain)


def _cluster(option: str) -> bool:
    return len(option) > 1 and option[0] == "-" and option[1:].isalnum() and not option.startswith("--")
