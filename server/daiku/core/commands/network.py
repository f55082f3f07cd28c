"""Whether a command is known to need the network."""

from __future__ import annotations

import re

from daiku.core.commands.tables.network import PROGRAMS, SUBCOMMANDS
from daiku.core.commands.words import Word
from daiku.core.commands.wrappers import program_name
from daiku.core.text.patterns import lazy

_CLIENTS = frozenset({"curl", "wget", "http", "https", "nc", "ncat", "netcat", "telnet", "ping", "ping6"})
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


def wants_network(words: tuple[Word, ...]) -> bool:
    """True where the program is known to need the network."""
    name = program_name(words)
    texts = [w.text for w in words[1:]]
    if _PYTHON.match(name) and texts[:2] == ["-m", "pip"]:
        name, texts = "pip", texts[2:]
    if name in _CLIENTS and _stays_on_loopback(texts):
        return False
    if name in PROGRAMS:
        return True
    seconds = SUBCOMMANDS.get(name)
    operands = [t for t in texts if not t.startswith("-")]
    return bool(seconds) and any(t in seconds for t in operands[:2])


def _stays_on_loopback(texts: list[str]) -> bool:
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
