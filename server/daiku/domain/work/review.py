"""What a person decides on changes, and what bringing files back cannot undo."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Wire

ReviewDecision = Literal["accept", "reject"]


class Irrevocable(Wire):
    """A command (or a call of another program's tool) that ran after a checkpoint: its effects stay."""

    command: str
    exit_code: int | None = None
    """None for calls that have none, and for commands whose end is not known."""
    time: str
