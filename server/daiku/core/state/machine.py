"""A run without a model: what its state machine does next, as typed moves."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.tools import ToolCall
from daiku.texts.text import NO_TEXT, Text


class MakeCall(NamedTuple):
    """Make this call; `text` says to the person what it is for. `asks`: the question and the choices of one that
    lets the person choose, for the arguments of a call hold no more than their English."""

    call: ToolCall
    text: Text = NO_TEXT
    asks: tuple[Text, ...] = ()


class EndRun(NamedTuple):
    """End the run with these last words."""

    text: Text


Move: TypeAlias = MakeCall | EndRun | Failure
"""A Failure ends the run too: it cannot go on."""
