"""Whether a command is known to need the network."""

from __future__ import annotations

import re

from daiku.core.commands.tables.network import PROGRAMS, SUBCOMMANDS
from daiku.core.commands.words import Word
from daiku.core.commands.wrappers import program_name

_PYTHON = re.compile(r"^(?:python|python3|python3\.\d+|py)$")


def wants_network(words: tuple[Word, ...]) -> bool:
    """True where the program is known to need the network."""
    name = program_name(words)
    texts = [w.text for w in words[1:]]
    if _PYTHON.match(name) and texts[:2] == ["-m", "pip"]:
        name, texts = "pip", texts[2:]
    if name in PROGRAMS:
        return True
    seconds = SUBCOMMANDS.get(name)
    operands = [t for t in texts if not t.startswith("-")]
    return bool(seconds) and any(t in seconds for t in operands[:2])
