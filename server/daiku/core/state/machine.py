"""A run without a model: what its state machine does next, as typed moves."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.tools import ToolCall


class MakeCall(NamedTuple):
    """Make this call; `text` says to the person what it is for."""

    call: ToolCall
    text: str = ""


class EndRun(NamedTuple):
    """End the run with these last words."""

    text: str


Move: TypeAlias = MakeCall | EndRun | Failure
"""A Failure ends the run too: it cannot go on."""
