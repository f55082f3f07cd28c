"""Decide whether a command is known to need the network."""

from __future__ import annotations

import re

from daiku.guard.rules.commands.programs import list_words, list_words_by_name
from daiku.guard.rules.commands.words import Word
from daiku.guard.rules.commands.wrappers import program_name
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
